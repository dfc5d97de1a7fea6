#include "codec/walker.hpp"

#include <algorithm>
#include <cassert>

namespace codec {
namespace {

// 0 for the types whose size is on the wire.
constexpr std::uint32_t fixed_size(Type type) {
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

}  // namespace

Walker::Walker(const Message& message, Version version, std::uint64_t size)
    : left_(size), version_(version), flexible_(message.is_flexible(version)) {
  assert(message.versions.contain(version));
  levels_[depth_++] = {.fields = message.fields, .elements_left = 1, .has_tags = flexible_};
}

Walker::Walker(std::span<const Field> rows, Version version, bool flexible, std::uint64_t size)
    : left_(size), version_(version), flexible_(flexible) {
  levels_[depth_++] = {.fields = rows, .elements_left = 1};
}

Walker::Step Walker::next(Cursor& in) {
  for (;;) {
    const auto skipped = std::min<std::size_t>(skip_left_, in.remaining());
    in.take(skipped);
    skip_left_ -= static_cast<std::uint32_t>(skipped);
    left_ -= skipped;
    if (skip_left_ > 0) return {Step::Kind::need_more};
    if (depth_ == 0) return {Step::Kind::done};

    // Each step works on a copy, so one that does not fit into the window leaves no trace.
    Cursor attempt = in;
    const Level& level = levels_[depth_ - 1];
    const Step step = level.next_field < level.fields.size() ? read_field(attempt, level.fields[level.next_field])
                                                             : leave_struct(attempt);
    if (attempt.state() == Cursor::State::malformed) return {Step::Kind::malformed};
    const auto consumed = attempt.position() - in.position();
    if (attempt.state() == Cursor::State::truncated || consumed > left_) {
      if (in.remaining() >= left_) return malformed(Error::truncated);
      return {Step::Kind::need_more};
    }
    left_ -= consumed;
    if (step.kind == Step::Kind::records || step.kind == Step::Kind::tagged) left_ -= step.size;
    in = attempt;
    if (step.kind != Step::Kind::none) return step;
  }
}

bool Walker::is_cut_off() const {
  if (left_ > 0) return false;
  auto rest = *this;
  Cursor nothing({});
  return rest.next(nothing).kind != Step::Kind::done;
}

Walker::Step Walker::read_field(Cursor& in, const Field& field) {
  Level& level = levels_[depth_ - 1];
  if (!field.versions.contain(version_) || field.tag != untagged) {
    ++level.next_field;
    return {};
  }
  if (field.type == Type::structure) {
    ++level.next_field;
    enter(field, 1, flexible_);
    return {};
  }
  return read_sized(in, field);
}

Walker::Step Walker::read_sized(Cursor& in, const Field& field) {
  const auto begin = in.position();
  const auto fixed = fixed_size(field.type);
  const Length length = fixed ? Length{fixed} : read_length(in, field.type);
  if (!in.good()) return {};
  const auto prefix = in.since(begin);
  const bool is_array = field.type == Type::structs || field.type == Type::scalars;
  // An element has at least one byte, so a count, like a length, is at most what is left.
  require(in, length.size <= left_ - std::min<std::uint64_t>(left_, fixed ? 0 : prefix.size()),
          fixed ? Error::truncated : Error::bad_length);

  if (field.role == Role::none || is_array || field.type == Type::records) {
    if (!in.good()) return {};
    ++levels_[depth_ - 1].next_field;
    if (field.type == Type::records) return {Step::Kind::records, field.role, {}, prefix, length.size, length.is_null};
    if (!is_array) {
      skip_left_ = length.size;
      return {};
    }
    if (length.size > 0) enter(field, length.size, flexible_ && field.type == Type::structs);
    if (field.role == Role::none) return {};
    return {Step::Kind::array, field.role, {}, prefix, length.size, length.is_null};
  }

  require(in, length.size <= value_size_max);
  const auto value = in.take(length.size);
  if (!in.good()) return {};
  ++levels_[depth_ - 1].next_field;
  return {Step::Kind::field, field.role, value, in.since(begin), length.size, length.is_null};
}

// Reads what follows a struct's last row: in flexible versions, tagged fields.
Walker::Step Walker::leave_struct(Cursor& in) {
  Level& level = levels_[depth_ - 1];
  if (level.has_tags && !level.in_tags) {
    const auto tags = in.unsigned_varint();
    if (!in.good()) return {};
    require(in, tags <= left_);
    level.in_tags = true;
    level.tags_left = tags;
    return {};
  }
  if (level.tags_left > 0) return read_tagged(in);

  const auto role = level.role;
  if (--level.elements_left > 0) {
    level.next_field = 0;
    level.in_tags = false;
  } else {
    --depth_;
  }
  if (role == Role::none) return {};
  return {Step::Kind::element_end, role};
}

Walker::Step Walker::read_tagged(Cursor& in) {
  Level& level = levels_[depth_ - 1];
  const auto begin = in.position();
  const auto tag = in.unsigned_varint();
  const auto tag_bytes = in.since(begin);
  const auto size_begin = in.position();
  const auto size = in.unsigned_varint();
  if (!in.good()) return {};
  require(in, size <= left_ - std::min<std::uint64_t>(left_, in.position() - begin));
  if (!in.good()) return {};
  --level.tags_left;
  for (const auto& field : level.fields)
    if (field.tag >= 0 && static_cast<std::uint32_t>(field.tag) == tag && field.versions.contain(version_) &&
        field.role != Role::none)
      return {Step::Kind::tagged, field.role, in.since(size_begin), tag_bytes, size};
  skip_left_ = size;
  return {};
}

// A null is as long as an empty value.
Walker::Length Walker::read_length(Cursor& in, Type type) {
  if (flexible_ && type != Type::classic_string) {
    const auto size_plus_one = in.unsigned_varint();
    if (size_plus_one == 0) return {0, true};
    return {size_plus_one - 1};
  }
  const bool is_short = type == Type::string || type == Type::classic_string;
  const std::int32_t size = is_short ? in.integer<std::int16_t>() : in.integer<std::int32_t>();
  require(in, size >= -1);
  if (size < 0) return {0, true};
  return {static_cast<std::uint32_t>(size)};
}

void Walker::enter(const Field& field, std::uint32_t elements, bool has_tags) {
  assert(depth_ < depth_max);
  const auto role = field.type == Type::structure ? Role::none : field.role;
  levels_[depth_++] = {.fields = field.element, .elements_left = elements, .role = role, .has_tags = has_tags};
}

Walker::Step Walker::malformed(Error error) {
  error_ = error;
  return {Step::Kind::malformed};
}

void Walker::require(Cursor& in, bool is_sane, Error error) {
  if (is_sane || !in.good()) return;
  error_ = error;
  in.fail(Cursor::State::malformed);
}

}  // namespace codec
