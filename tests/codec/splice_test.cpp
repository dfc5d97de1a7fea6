#include "codec/splice.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/hex.hpp"

namespace codec {

using support::from_hex;
using support::to_hex;

TEST_CASE("splices grow, shrink, insert and remove, and the size field follows") {
  const auto frame = from_hex(
      "00000006"
      "a1a2a3a4a5a6");
  CHECK(to_hex(apply_splices(frame, {})) == to_hex(frame));
  const std::vector<Splice> splices{
      {4, 1, from_hex("b1b2b3")},
      {5, 2, {}},
      {8, 0, from_hex("c1")},
      {9, 1, from_hex("d1")},
  };
  CHECK(to_hex(apply_splices(frame, splices)) ==
        "00000007"
        "b1b2b3"
        "a4"
        "c1"
        "a5"
        "d1");
}

}  // namespace codec
