#pragma once
#include <boost/endian/conversion.hpp>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace codec {

// Reads Kafka's primitives from a window of bytes.
//
// Errors stick: once a read runs out of bytes or meets nonsense, it and every later read return zero, so a decoder
// checks once a step instead of after every field. Nothing is allocated by a length that the bytes declare.
class Cursor {
 public:
  enum class State { good, truncated, malformed };

  explicit Cursor(std::span<std::byte> window) : window_(window) {}

  State state() const { return state_; }
  bool good() const { return state_ == State::good; }
  std::size_t position() const { return position_; }
  std::size_t remaining() const { return window_.size() - position_; }

  template <std::integral T>
  T integer() {
    const auto bytes = take(sizeof(T));
    if (bytes.empty()) return 0;
    return boost::endian::endian_load<T, sizeof(T), boost::endian::order::big>(
        reinterpret_cast<const unsigned char*>(bytes.data()));
  }

  // At most five bytes; bits past the 32nd are dropped, as Kafka's own reader does.
  std::uint32_t unsigned_varint() {
    std::uint32_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
      const auto byte = integer<std::uint8_t>();
      value |= static_cast<std::uint32_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return good() ? value : 0;
    }
    fail(State::malformed);
    return 0;
  }

  // The next `size` bytes, still in the window, so that the caller may patch them in place.
  std::span<std::byte> take(std::size_t size) {
    if (!good()) return {};
    if (remaining() < size) {
      fail(State::truncated);
      return {};
    }
    const auto bytes = window_.subspan(position_, size);
    position_ += size;
    return bytes;
  }

  // What has been read since `position`.
  std::span<std::byte> since(std::size_t position) const { return window_.subspan(position, position_ - position); }

  void fail(State state) {
    if (good()) state_ = state;
  }

 private:
  std::span<std::byte> window_;
  std::size_t position_ = 0;
  State state_ = State::good;
};

}  // namespace codec
