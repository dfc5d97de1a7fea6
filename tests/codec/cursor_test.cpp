#include "codec/cursor.hpp"

#include "codec/writer.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/hex.hpp"

namespace codec {
namespace {

using support::from_hex;
using support::to_hex;

std::uint32_t read_varint(std::string_view hex, Cursor::State state = Cursor::State::good) {
  auto bytes = from_hex(hex);
  Cursor in(bytes);
  const auto value = in.unsigned_varint();
  CHECK(in.state() == state);
  return value;
}

}  // namespace

TEST_CASE("integers are read highest byte first and with their sign") {
  auto bytes = from_hex("fffe0000000180000000000000010102");
  Cursor in(bytes);
  CHECK(in.integer<std::int16_t>() == -2);
  CHECK(in.integer<std::int32_t>() == 1);
  CHECK(in.integer<std::int64_t>() == INT64_MIN + 1);
  CHECK(in.integer<std::uint16_t>() == 0x0102);
  CHECK(in.remaining() == 0);
  CHECK(in.good());
}

TEST_CASE("a varint has one to five bytes, and bits past the 32nd are dropped") {
  CHECK(read_varint("00") == 0);
  CHECK(read_varint("7f") == 127);
  CHECK(read_varint("8001") == 128);
  CHECK(read_varint("8000") == 0);  // a longer form than needed
  CHECK(read_varint("ffffffff0f") == UINT32_MAX);
  CHECK(read_varint("ffffffff7f") == UINT32_MAX);
  CHECK(read_varint("ffffffffff", Cursor::State::malformed) == 0);
  CHECK(read_varint("ffffffffff01", Cursor::State::malformed) == 0);
  CHECK(read_varint("ffffffff", Cursor::State::truncated) == 0);
  CHECK(read_varint("", Cursor::State::truncated) == 0);
}

TEST_CASE("after the first error every read gives zero and nothing moves") {
  auto bytes = from_hex("0102030405");
  Cursor in(bytes);
  CHECK(in.integer<std::int16_t>() == 0x0102);
  CHECK(in.integer<std::int32_t>() == 0);
  CHECK(in.state() == Cursor::State::truncated);
  CHECK(in.integer<std::int8_t>() == 0);
  CHECK(in.unsigned_varint() == 0);
  CHECK(in.take(1).empty());
  CHECK(in.position() == 2);
  in.fail(Cursor::State::malformed);
  CHECK(in.state() == Cursor::State::truncated);
}

TEST_CASE("what is taken from a window lies in the window") {
  auto bytes = from_hex("0102030405");
  Cursor in(bytes);
  in.take(1);
  const auto taken = in.take(2);
  CHECK(taken.data() == bytes.data() + 1);
  CHECK(taken.size() == 2);
  CHECK(to_hex(in.since(0)) == "010203");
  CHECK(in.take(3).empty());
  CHECK(in.state() == Cursor::State::truncated);
}

TEST_CASE("the writer writes what the cursor reads") {
  for (const std::uint32_t value : {0u, 1u, 127u, 128u, 16383u, 16384u, 0x7fffffffu, UINT32_MAX}) {
    CAPTURE(value);
    auto bytes = Writer(true).unsigned_varint(value).data();
    Cursor in(bytes);
    CHECK(in.unsigned_varint() == value);
    CHECK(in.remaining() == 0);
  }
}

TEST_CASE("the writer's lengths are compact in flexible versions and fixed before") {
  const auto written = [](bool flexible) {
    Writer out(flexible);
    out.string("ab").null_string().classic_string("c").array(3).bytes(from_hex("0a")).no_tags();
    return to_hex(out.data());
  };
  CHECK(written(false) ==
        "00026162"
        "ffff"
        "000163"
        "00000003"
        "000000010a");
  CHECK(written(true) ==
        "036162"
        "00"
        "000163"
        "04"
        "020a"
        "00");
  CHECK(to_hex(Writer(false).integer(std::int16_t{5}).frame()) == "000000020005");
}

}  // namespace codec
