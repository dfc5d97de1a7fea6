#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/cursor.hpp"
#include "codec/error.hpp"
#include "codec/schema.hpp"

namespace codec {

// Walks one message by its table and stops only at the fields that have a role.
//
// It does no I/O and never needs the whole message: when the window ends inside a step it answers need_more, having
// consumed whole steps only, and goes on from there with the next window. It knows how many bytes the message has, so
// a length or count that cannot be true is malformed at once, and so is a message that ends too early.
class Walker {
 public:
  struct Step {
    enum class Kind {
      none,
      field,        // `value`: its bytes, to be patched there; `encoded`: the same with the length before them
      records,      // the caller takes the next `size` bytes; `encoded`: the length, `is_null` says how it was meant
      array,        // of a role: `size` elements follow; `encoded`: the count
      element_end,  // of an array with a role
      tagged,       // of a role: the caller takes the next `size` bytes; `encoded`: the tag, `value`: the size
      need_more,
      done,  // what is left() of the message lies behind its last field
      malformed,
    } kind = Kind::none;
    Role role = Role::none;
    std::span<std::byte> value = {};
    std::span<std::byte> encoded = {};
    std::uint32_t size = 0;
    bool is_null = false;
  };

  // A value with a role must fit into one window; longer ones are malformed. Kafka's own limit for strings.
  static constexpr std::uint32_t value_size_max = 32767;

  // `size`: bytes of the message, from its first field on.
  Walker(const Message& message, Version version, std::uint64_t size);

  // The rows alone, as they stand inside a tagged field: no tagged fields of their own behind them.
  Walker(std::span<const Field> rows, Version version, bool flexible, std::uint64_t size);

  Step next(Cursor& in);

  // Bytes of the message not consumed yet, those given to the caller not counted.
  std::uint64_t left() const { return left_; }
  // Whether no byte of the message is left, and fields are.
  bool is_cut_off() const;
  Error error() const { return error_; }

 private:
  // The struct, or run of array elements, being read.
  struct Level {
    std::span<const Field> fields;
    std::uint32_t elements_left = 0;
    Role role = Role::none;
    bool has_tags = false;
    bool in_tags = false;
    std::uint32_t tags_left = 0;
    std::size_t next_field = 0;
  };
  struct Length {
    std::uint32_t size = 0;
    bool is_null = false;
  };
  static constexpr std::size_t depth_max = 8;

  void enter(const Field& field, std::uint32_t elements, bool has_tags);
  Step read_field(Cursor& in, const Field& field);
  Step read_sized(Cursor& in, const Field& field);
  Step leave_struct(Cursor& in);
  Step read_tagged(Cursor& in);
  Length read_length(Cursor& in, Type type);
  Step malformed(Error error);
  void require(Cursor& in, bool is_sane, Error error = Error::bad_length);

  std::array<Level, depth_max> levels_;
  std::size_t depth_ = 0;
  std::uint64_t left_;
  std::uint32_t skip_left_ = 0;  // bytes of a value without a role that are still to be passed over
  Version version_;
  bool flexible_;
  Error error_ = Error::bad_length;
};

}  // namespace codec
