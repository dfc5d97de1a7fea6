#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "codec/cursor.hpp"
#include "codec/schema.hpp"

namespace support {

// A value of a message. Bytes and strings are views into it.
struct MessageValue {
  std::string_view name;
  std::int64_t number = 0;
  std::span<std::byte> bytes;
  std::vector<MessageValue> elements;  // of an array; of a struct its fields

  std::string_view text() const { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
  // A field of a struct by its name in the table; one that the version does not have is zero and empty.
  const MessageValue& operator[](std::string_view field) const;
};

// Reads a whole message by its table, of which the proxy's own reader (codec::Walker) would stop at a few fields only.
// Tagged fields are passed over. Where the bytes make no sense, the cursor says so and the rest is empty.
MessageValue read_message(const codec::Message& message, codec::Version version, codec::Cursor& in);

}  // namespace support
