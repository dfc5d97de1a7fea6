#pragma once
#include <boost/endian/conversion.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace codec {

// Appends Kafka's primitives to a vector: the few messages that the proxy, the mirror and the tests write themselves.
class Writer {
 public:
  explicit Writer(bool flexible) : flexible_(flexible) {}

  template <std::integral T>
  Writer& integer(T value) {
    unsigned char bytes[sizeof(T)];
    boost::endian::endian_store<T, sizeof(T), boost::endian::order::big>(bytes, value);
    return raw(std::as_bytes(std::span(bytes)));
  }

  Writer& unsigned_varint(std::uint32_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<std::byte>(value | 0x80));
    bytes_.push_back(static_cast<std::byte>(value));
    return *this;
  }

  Writer& raw(std::span<const std::byte> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }

  Writer& string(std::string_view text) {
    length<std::int16_t>(text.size());
    return raw(std::as_bytes(std::span(text)));
  }
  Writer& null_string() { return flexible_ ? unsigned_varint(0) : integer<std::int16_t>(-1); }

  // ClientId of the request header: never compact.
  Writer& classic_string(std::string_view text) {
    return integer(static_cast<std::int16_t>(text.size())).raw(std::as_bytes(std::span(text)));
  }

  Writer& bytes(std::span<const std::byte> value) {
    length<std::int32_t>(value.size());
    return raw(value);
  }

  Writer& array(std::size_t count) {
    length<std::int32_t>(count);
    return *this;
  }

  // The empty tagged fields that end a struct of a flexible version.
  Writer& no_tags() { return flexible_ ? unsigned_varint(0) : *this; }

  std::vector<std::byte>& data() { return bytes_; }

  // All that was written, behind the size that begins every frame.
  std::vector<std::byte> frame() const {
    Writer framed(false);
    framed.integer(static_cast<std::int32_t>(bytes_.size())).raw(bytes_);
    return std::move(framed.bytes_);
  }

 private:
  template <std::integral Classic>
  void length(std::size_t size) {
    if (flexible_) {
      unsigned_varint(static_cast<std::uint32_t>(size + 1));
    } else {
      integer(static_cast<Classic>(size));
    }
  }

  std::vector<std::byte> bytes_;
  bool flexible_;
};

}  // namespace codec
