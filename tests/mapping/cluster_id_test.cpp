#include "mapping/cluster_id.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/vectors.hpp"

namespace mapping {

TEST_CASE("the halves and the region of a cluster id are those of the vectors") {
  for (const auto& row : support::golden_cluster_ids()) {
    CAPTURE(row.text);
    const auto id = ClusterId::parse(row.text);
    REQUIRE(id);
    CHECK(id->most_significant() == row.most_significant);
    CHECK(id->least_significant() == row.least_significant);
    CHECK(id->region() == Region{row.region});
    for (const auto& [pid, mapped] : row.mapped) CHECK(layout::pack(id->region(), {pid}) == ProducerId{mapped});
  }
}

TEST_CASE("two default ids of public container images share a region and are two clusters all the same") {
  const auto one = ClusterId::parse("4L6g3nShT-eMCtK--X86sw");
  const auto other = ClusterId::parse("5L6g3nShT-eMCtK--X86sw");
  REQUIRE((one && other));
  CHECK(one->region() == Region{0x8dde7554});
  CHECK(other->region() == one->region());
  CHECK(*one != *other);
}

TEST_CASE("a cluster id may carry the padding that Kafka's own reader takes") {
  const auto id = ClusterId::parse("MkU3OEVBNTcwNTJENDM2Qg==");
  REQUIRE(id);
  CHECK(id == ClusterId::parse("MkU3OEVBNTcwNTJENDM2Qg"));
  CHECK(id->region() == Region{0x71720375});
}

TEST_CASE("two strings that differ only in bits that do not count are one cluster") {
  const auto id = ClusterId::parse("MkU3OEVBNTcwNTJENDM2Qg");
  // 'g' is 100000 and 'v' 101111: the last four bits lie behind the 128th.
  for (const char last : std::string_view("ghijklmnopqrstuv")) {
    CAPTURE(last);
    CHECK(ClusterId::parse(std::string("MkU3OEVBNTcwNTJENDM2Q") + last) == id);
  }
  CHECK(ClusterId::parse("MkU3OEVBNTcwNTJENDM2Qf") != id);
  CHECK(ClusterId::parse("MkU3OEVBNTcwNTJENDM2Qw") != id);
}

TEST_CASE("what is no such UUID is no cluster id") {
  for (const std::string text :
       {"", "lkc-abc123", "free text", "MkU3OEVBNTcwNTJENDM2Q", "MkU3OEVBNTcwNTJENDM2Qgg",   // sizes
        "MkU3OEVBNTcwNTJENDM2Qg=", "MkU3OEVBNTcwNTJENDM2Qg===", "MkU3OEVBNTcwNTJENDM2Q===",  // padding
        "=kU3OEVBNTcwNTJENDM2Qg", "MkU3OEVBNTcwNTJENDM2==", "MkU3OEVBNTcwNTJENDM2Qgg=", "+kU3OEVBNTcwNTJENDM2Qg",
        "/kU3OEVBNTcwNTJENDM2Qg", "MkU3OEVBNTcwNTJENDM2Q/",  // plain base64
        " kU3OEVBNTcwNTJENDM2Qg", "MkU3OEVBNTcwNTJENDM2Q\n", "4d6b5533-4f45-5642-4e54-6377",
        "\xc3\xa9kU3OEVBNTcwNTJENDM2Q"}) {
    CAPTURE(text);
    CHECK_FALSE(ClusterId::parse(text));
  }
  CHECK_FALSE(ClusterId::parse(std::string_view("MkU3OEVBNTcwNTJENDM2\0g", 22)));
}

}  // namespace mapping
