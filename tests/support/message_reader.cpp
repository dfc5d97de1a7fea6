#include "tests/support/message_reader.hpp"

#include <algorithm>

namespace support {
namespace {

using codec::Cursor;
using codec::Field;
using codec::Type;

constexpr std::size_t uuid_size = 16;

class Reader {
 public:
  Reader(codec::Version version, bool flexible, Cursor& in) : version_(version), flexible_(flexible), in_(in) {}

  MessageValue read_struct(std::span<const Field> rows, bool has_tags) {
    MessageValue fields;
    for (const auto& row : rows)
      if (row.tag == codec::untagged && row.versions.contain(version_)) fields.elements.push_back(read_field(row));
    if (has_tags && flexible_) skip_tags();
    return fields;
  }

 private:
  MessageValue read_field(const Field& row) {
    MessageValue value;
    switch (row.type) {
      case Type::int8: value.number = in_.integer<std::int8_t>(); break;
      case Type::int16: value.number = in_.integer<std::int16_t>(); break;
      case Type::uint16: value.number = in_.integer<std::uint16_t>(); break;
      case Type::int32: value.number = in_.integer<std::int32_t>(); break;
      case Type::int64: value.number = in_.integer<std::int64_t>(); break;
      case Type::uuid: value.bytes = in_.take(uuid_size); break;
      case Type::string: value.bytes = in_.take(read_length<std::int16_t>()); break;
      case Type::classic_string: value.bytes = in_.take(classic_length<std::int16_t>()); break;
      case Type::bytes:
      case Type::records: value.bytes = in_.take(read_length<std::int32_t>()); break;
      case Type::structure: value = read_struct(row.element, true); break;
      case Type::structs:
      case Type::scalars:
        for (auto left = read_length<std::int32_t>(); left > 0 && in_.good(); --left)
          value.elements.push_back(read_struct(row.element, row.type == Type::structs));
    }
    value.name = row.name;
    return value;
  }

  // Null counts as empty.
  template <typename Classic>
  std::size_t read_length() {
    if (!flexible_) return classic_length<Classic>();
    const auto length = in_.unsigned_varint();
    return length == 0 ? 0 : length - 1;
  }

  template <typename Classic>
  std::size_t classic_length() {
    const auto length = in_.integer<Classic>();
    if (length < -1) in_.fail(Cursor::State::malformed);
    return length < 0 ? 0 : static_cast<std::size_t>(length);
  }

  void skip_tags() {
    for (auto tags = in_.unsigned_varint(); tags > 0 && in_.good(); --tags) {
      in_.unsigned_varint();
      in_.take(in_.unsigned_varint());
    }
  }

  codec::Version version_;
  bool flexible_;
  Cursor& in_;
};

}  // namespace

const MessageValue& MessageValue::operator[](std::string_view field) const {
  static const MessageValue absent;
  const auto at = std::ranges::find(elements, field, &MessageValue::name);
  return at == elements.end() ? absent : *at;
}

MessageValue read_message(const codec::Message& message, codec::Version version, codec::Cursor& in) {
  return Reader(version, message.is_flexible(version), in).read_struct(message.fields, true);
}

}  // namespace support
