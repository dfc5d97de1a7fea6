#include "tests/support/encoder.hpp"

#include <map>
#include <random>
#include <span>
#include <utility>

#include "codec/writer.hpp"

namespace support {
namespace {

using codec::Field;
using codec::Role;
using codec::Type;
using codec::Writer;
using Kind = codec::Walker::Step::Kind;

std::uint32_t fixed_size(Type type) {
  switch (type) {
    case Type::int8: return 1;
    case Type::int16:
    case Type::uint16: return 2;
    case Type::int32: return 4;
    case Type::int64: return 8;
    case Type::uuid: return 16;
    default: return 0;
  }
}

class Encoder {
 public:
  Encoder(codec::Version version, bool is_flexible, std::uint64_t seed, const Decisions& decisions)
      : version_(version), is_flexible_(is_flexible), draw_(seed), decisions_(decisions) {}

  Encoded encode(std::span<const Field> fields) {
    write_struct(fields, is_flexible_);
    return std::move(out_);
  }

 private:
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(draw_() % bound); }
  bool one_in(std::uint32_t n) { return below(n) == 0; }

  Bytes draw_bytes(std::uint32_t size) {
    Bytes bytes(size);
    for (auto& byte : bytes) byte = static_cast<std::byte>(draw_() & 0xff);
    return bytes;
  }

  std::uint32_t draw_size() {
    static constexpr std::uint32_t sizes[] = {0, 1, 5, 40, 126, 127, 128, 300};
    return sizes[below(std::size(sizes))];
  }

  void append(std::span<const std::byte> bytes) { out_.bytes.insert(out_.bytes.end(), bytes.begin(), bytes.end()); }

  void write_struct(std::span<const Field> fields, bool has_tags) {
    for (const auto& field : fields)
      if (field.versions.contain(version_) && field.tag == codec::untagged) write_field(field);
    if (has_tags) write_tagged_fields(fields);
  }

  void write_field(const Field& field) {
    switch (field.type) {
      case Type::structure: return write_struct(field.element, is_flexible_);
      case Type::structs:
      case Type::scalars: return write_array(field);
      case Type::records: return write_records(field);
      default: return write_value(field);
    }
  }

  void write_records(const Field& field) {
    bool is_null = one_in(8);
    const auto drawn = is_null ? Bytes() : draw_bytes(draw_size());
    auto value = drawn;
    if (decisions_.value) decisions_.value(field, value);
    if (value != drawn) is_null = false;
    const auto length = length_of(field.type, value.size(), is_null);
    append(length);
    append(value);
    const auto size = static_cast<std::uint32_t>(value.size());
    out_.steps.push_back({Kind::records, field.role, {}, length, size, is_null, value});
  }

  void write_value(const Field& field) {
    const auto fixed = fixed_size(field.type);
    bool is_null = fixed == 0 && one_in(8);
    const auto drawn = is_null ? Bytes() : draw_bytes(fixed ? fixed : draw_size());
    auto value = drawn;
    if (field.role != Role::none && decisions_.value) decisions_.value(field, value);
    if (value != drawn) is_null = false;

    auto encoded = fixed ? Bytes() : length_of(field.type, value.size(), is_null);
    encoded.insert(encoded.end(), value.begin(), value.end());
    append(encoded);
    if (field.role == Role::none) return;
    const auto size = static_cast<std::uint32_t>(value.size());
    out_.steps.push_back({Kind::field, field.role, value, encoded, size, is_null, {}});
  }

  void write_array(const Field& field) {
    const bool is_null = one_in(8);
    const auto drawn = is_null ? 0 : below(4);
    // The count stands in front and is known last.
    const auto outer = std::exchange(out_, {});
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < drawn; ++i) {
      const auto before = out_;
      write_struct(field.element, is_flexible_ && field.type == Type::structs);
      if (field.role != Role::none && decisions_.keeps_element && !decisions_.keeps_element(field.role)) {
        out_ = before;
        continue;
      }
      ++kept;
      if (field.role != Role::none) out_.steps.push_back({Kind::element_end, field.role, {}, {}, 0, false, {}});
    }
    const auto elements = std::exchange(out_, outer);
    const auto count = length_of(field.type, kept, is_null);
    append(count);
    append(elements.bytes);
    if (field.role != Role::none) out_.steps.push_back({Kind::array, field.role, {}, count, kept, is_null, {}});
    out_.steps.insert(out_.steps.end(), elements.steps.begin(), elements.steps.end());
  }

  void write_tagged_fields(std::span<const Field> fields) {
    struct Tagged {
      Bytes content;
      Role role = Role::none;
    };
    std::map<std::uint32_t, Tagged> tags;
    for (const auto& field : fields) {
      if (field.tag == codec::untagged || !field.versions.contain(version_) || one_in(3)) continue;
      const auto outer = std::exchange(out_, {});
      write_field(field);
      // The caller of a walker gets a tagged field as it stands and walks it by itself.
      tags[static_cast<std::uint32_t>(field.tag)] = {std::exchange(out_, outer).bytes, field.role};
    }
    constexpr std::uint32_t unknown_min = 10;
    for (auto unknown = below(3); unknown > 0; --unknown)
      tags[unknown_min + below(one_in(2) ? 100 : 1u << 31)] = {draw_bytes(draw_size()), Role::none};

    append(varint(static_cast<std::uint32_t>(tags.size())));
    for (const auto& [tag, tagged] : tags) {
      const auto size = static_cast<std::uint32_t>(tagged.content.size());
      append(varint(tag));
      append(varint(size));
      append(tagged.content);
      if (tagged.role != Role::none)
        out_.steps.push_back({Kind::tagged, tagged.role, varint(size), varint(tag), size, false, tagged.content});
    }
  }

  static Bytes varint(std::uint32_t value) { return Writer(true).unsigned_varint(value).data(); }

  Bytes length_of(Type type, std::size_t size, bool is_null) const {
    const bool is_short = type == Type::string || type == Type::classic_string;
    if (is_flexible_ && type != Type::classic_string) return varint(is_null ? 0 : static_cast<std::uint32_t>(size + 1));
    if (is_short) return Writer(false).integer(static_cast<std::int16_t>(is_null ? -1 : static_cast<int>(size))).data();
    return Writer(false).integer(is_null ? -1 : static_cast<std::int32_t>(size)).data();
  }

  codec::Version version_;
  bool is_flexible_;
  std::mt19937_64 draw_;
  const Decisions& decisions_;
  Encoded out_;
};

}  // namespace

std::vector<const codec::Message*> all_messages() {
  std::vector<const codec::Message*> messages{&codec::headers::request, &codec::headers::response};
  for (const auto& api : codec::apis) {
    if (api.request != nullptr) messages.push_back(api.request);
    if (api.response != nullptr) messages.push_back(api.response);
  }
  return messages;
}

Encoded encode_random(const codec::Message& message, codec::Version version, std::uint64_t seed,
                      const Decisions& decisions) {
  return Encoder(version, message.is_flexible(version), seed, decisions).encode(message.fields);
}

}  // namespace support
