#include "codec/record_batch.hpp"

#include <algorithm>
#include <cstring>

#include "codec/crc32c.hpp"
#include "codec/frame.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/vectors.hpp"

namespace codec {
namespace {

using support::Bytes;
using support::to_hex;

bool is_batch(const Bytes& entry) {
  return load<RecordsEntryHead>(entry).magic == 2;
}

// The first batch of a records field, in a block of exactly its size.
Bytes first_batch(const Bytes& records) {
  const auto size = load<RecordsEntryHead>(records).size();
  return Bytes(records.begin(), records.begin() + size);
}

std::uint32_t computed_crc(const Bytes& batch) {
  return crc32c(std::span(batch).subspan(offsetof(RecordBatchHeader, attributes)));
}

bool has_right_crc(const Bytes& batch) {
  return computed_crc(batch) == load<RecordBatchHeader>(batch).crc;
}

Bytes rewritten(Bytes batch, std::int64_t producer_id) {
  auto header = load<RecordBatchHeader>(batch);
  rewrite_producer_id(header, producer_id);
  store(batch, header);
  return batch;
}

RecordsEntryHead entry_head(int magic, std::int32_t length) {
  RecordsEntryHead head{};
  head.magic = static_cast<std::int8_t>(magic);
  head.length = length;
  return head;
}

}  // namespace

TEST_CASE("rewriting the producer id of a batch gives exactly the bytes of the vectors") {
  for (const auto& row : support::golden_batches()) {
    if (!is_batch(row.in)) continue;
    CAPTURE(row.name);
    const auto in = first_batch(row.in);
    REQUIRE(load<RecordBatchHeader>(in).producer_id == row.pid_in);
    auto out = rewritten(in, row.pid_out);
    if (auto header = load<RecordBatchHeader>(out); header.is_control() && row.pid_in >= 0) {
      make_refusable(header);
      store(out, header);
    }
    CHECK(to_hex(out) == to_hex(first_batch(row.out)));
  }
}

TEST_CASE("a batch whose checksum was right has the right one after its producer id is rewritten") {
  int batches = 0;
  for (const auto& row : support::golden_batches()) {
    if (!is_batch(row.in)) continue;
    CAPTURE(row.name);
    CHECK(has_right_crc(first_batch(row.in)));
    CHECK(has_right_crc(first_batch(row.out)));
    ++batches;
  }
  CHECK(batches > 0);
}

TEST_CASE("a batch with any flipped bit of its payload still fails its checksum after the rewrite") {
  for (const auto& row : support::golden_batches()) {
    if (!is_batch(row.in)) continue;
    CAPTURE(row.name);
    auto batch = first_batch(row.in);
    for (auto at = sizeof(RecordBatchHeader); at < batch.size(); ++at) {
      const auto bit = std::byte{1} << (at % 8);
      batch[at] ^= bit;
      REQUIRE_FALSE(has_right_crc(rewritten(batch, row.pid_in + 1)));
      REQUIRE_FALSE(has_right_crc(rewritten(batch, row.pid_out)));
      batch[at] ^= bit;
    }
  }
}

TEST_CASE("rewriting the producer id to itself changes nothing, and back again gives the batch that was") {
  for (const auto& row : support::golden_batches()) {
    if (!is_batch(row.in)) continue;
    CAPTURE(row.name);
    const auto batch = first_batch(row.in);
    CHECK(rewritten(batch, row.pid_in) == batch);
    CHECK(rewritten(rewritten(batch, row.pid_in ^ INT64_MIN), row.pid_in) == batch);
  }
}

TEST_CASE("only the producer id and the checksum of a rewritten batch differ") {
  const auto before = first_batch(support::golden_batches().front().in);
  const auto after = rewritten(before, -9223371946660462587);
  for (std::size_t at = 0; at < before.size(); ++at) {
    const bool may_differ = (at >= 17 && at < 21) || (at >= 43 && at < 51);
    CAPTURE(at);
    if (!may_differ) CHECK(before[at] == after[at]);
  }
}

TEST_CASE("a batch made refusable keeps its checksum right and differs in its offset alone") {
  const auto before = first_batch(support::golden_batches().front().in);
  auto header = load<RecordBatchHeader>(before);
  make_refusable(header);
  auto after = before;
  store(after, header);
  CHECK(header.base_offset == 1);
  CHECK(has_right_crc(after));
  CHECK(std::equal(before.begin() + 8, before.end(), after.begin() + 8));
}

TEST_CASE("the size of a batch counts the bytes in front of its length") {
  RecordBatchHeader header{};
  header.batch_length = 49;
  CHECK(header.size() == 61);
  header.batch_length = INT32_MAX;
  CHECK(header.size() == std::int64_t{INT32_MAX} + 12);
}

TEST_CASE("an entry is well formed when its length can be true for its magic") {
  CHECK(entry_head(2, 49).is_well_formed());
  CHECK(entry_head(2, INT32_MAX).is_well_formed());
  CHECK_FALSE(entry_head(2, 48).is_well_formed());
  CHECK_FALSE(entry_head(2, 0).is_well_formed());
  CHECK_FALSE(entry_head(2, -1).is_well_formed());
  CHECK_FALSE(entry_head(2, INT32_MIN).is_well_formed());
  for (const int magic : {0, 1}) {
    CHECK(entry_head(magic, 14).is_well_formed());
    CHECK_FALSE(entry_head(magic, 13).is_well_formed());
    CHECK_FALSE(entry_head(magic, -1).is_well_formed());
  }
  for (const int magic : {-128, -1, 3, 127}) CHECK_FALSE(entry_head(magic, 100).is_well_formed());
}

TEST_CASE("every entry of the vectors is well formed, of whatever magic") {
  for (const auto& row : support::golden_batches()) {
    CAPTURE(row.name);
    CHECK(load<RecordsEntryHead>(row.in).is_well_formed());
  }
  for (const auto* id : {"R4a", "R4b"}) {
    const auto entry = support::frame(id);
    CHECK(load<RecordsEntryHead>(entry).is_well_formed());
    CHECK(load<RecordsEntryHead>(entry).size() == static_cast<std::int64_t>(entry.size()));
  }
}

TEST_CASE("the attributes tell control batches and transactional ones") {
  RecordBatchHeader header{};
  CHECK_FALSE(header.is_control());
  CHECK_FALSE(header.is_transactional());
  header.attributes = 0x10;
  CHECK(header.is_transactional());
  CHECK_FALSE(header.is_control());
  header.attributes = 0x20;
  CHECK(header.is_control());
  CHECK_FALSE(header.is_transactional());
}

}  // namespace codec
