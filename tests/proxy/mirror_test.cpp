#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "codec/crc32c.hpp"
#include "codec/frame.hpp"
#include "codec/record_batch.hpp"
#include "tests/support/batch_builder.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/mock_cluster.hpp"
#include "tests/support/topic_client.hpp"
#include "tests/support/verbatim_mirror.hpp"

namespace {

using namespace support;
using codec::RecordBatchHeader;
using Bytes = std::vector<std::byte>;

constexpr std::chrono::seconds patience{60};
constexpr std::int16_t produce_key = 0;
constexpr std::int16_t fetch_key = 1;

std::vector<Record> some_records(int count, std::string_view text = "value") {
  std::vector<Record> records;
  for (int i = 0; i < count; ++i)
    records.push_back({1'700'000'000'000 - 7 * i, i % 3 == 0 ? std::nullopt : std::optional("key " + std::to_string(i)),
                       std::string(text) + std::to_string(i)});
  return records;
}

Bytes numbered_batch(int number, std::int64_t pid = 5) {
  return build_batch(some_records(2), {.producer_id = pid, .producer_epoch = 3, .base_sequence = 2 * number});
}

RecordBatchHeader header_of(const Bytes& batch) {
  return codec::load<RecordBatchHeader>(batch);
}

void produce(const MockCluster& cluster, int partition, const std::vector<Bytes>& batches) {
  TopicClient client(cluster.address(), "orders", patience);
  REQUIRE(client.refresh(patience).has_value());
  const auto leader = client.leader(partition);
  REQUIRE(leader.has_value());
  for (const auto& batch : batches) {
    const auto sent = client.send_produce(**leader, partition, batch, "");
    REQUIRE(sent.has_value());
    const auto produced = TopicClient::receive_produce(**leader, *sent);
    REQUIRE(produced.has_value());
    REQUIRE(produced->error_code == error_none);
  }
}

// The batches of a partition; the mock gives one to each Fetch. What is the broker's, the offset and (from
// librdkafka 2.8 on) the epoch of the leader, is made what a producer writes.
std::vector<Bytes> read_all(const MockCluster& cluster, int partition) {
  TopicClient client(cluster.address(), "orders", patience);
  REQUIRE(client.refresh(patience).has_value());
  const auto end = client.list_offset(partition, TopicClient::Offset::latest);
  REQUIRE(end.has_value());
  std::vector<Bytes> batches;
  for (std::int64_t offset = 0; offset < end->offset;) {
    const auto fetched = client.fetch(partition, offset, 1 << 20);
    REQUIRE(fetched.has_value());
    REQUIRE(fetched->records.size() >= sizeof(RecordBatchHeader));
    auto header = header_of(fetched->records);
    offset = header.base_offset + header.last_offset_delta + 1;
    header.base_offset = 0;
    header.partition_leader_epoch = -1;
    auto& batch = batches.emplace_back(fetched->records.begin(), fetched->records.begin() + header.size());
    codec::store(std::span(batch), header);
  }
  return batches;
}

struct Clusters {
  // Partition i is led by broker i + 1 at the source, and by the one after it at the destination.
  explicit Clusters(int partitions = 1, int brokers = 1) : from(brokers), to(brokers) {
    from.create_topic("orders", partitions);
    to.create_topic("orders", partitions);
    for (int i = 0; i < partitions; ++i) {
      from.set_leader("orders", i, i % brokers + 1);
      to.set_leader("orders", i, (i + 1) % brokers + 1);
    }
  }
  MirrorResult mirror(std::size_t in_flight = 1) const {
    return mirror_verbatim({.from = from.address(),
                            .to = to.address(),
                            .topic = "orders",
                            .to_topic = "",
                            .in_flight = in_flight,
                            .timeout = patience,
                            .patience = patience});
  }

  MockCluster from;
  MockCluster to;
};

}  // namespace

TEST_CASE("a built batch has its checksum, its length and what it was told") {
  const auto records = some_records(5);
  const auto compression = GENERATE(Compression::none, Compression::lz4, Compression::zstd);
  const auto batch = build_batch(records, {.producer_id = 0x123456789a,
                                           .producer_epoch = 7,
                                           .base_sequence = 42,
                                           .compression = compression,
                                           .is_transactional = true});
  const auto header = header_of(batch);
  CHECK(header.size() == static_cast<std::int64_t>(batch.size()));
  CHECK(header.crc == codec::crc32c(std::span(batch).subspan(21)));
  CHECK(header.base_offset == 0);
  CHECK(header.magic == 2);
  CHECK(header.attributes == (static_cast<int>(compression) | 0x10));
  CHECK(header.last_offset_delta == 4);
  CHECK(header.record_count == 5);
  CHECK(header.base_timestamp == records[0].timestamp);
  CHECK(header.max_timestamp == records[0].timestamp);
  CHECK(header.producer_id == 0x123456789a);
  CHECK(header.producer_epoch == 7);
  CHECK(header.base_sequence == 42);
}

TEST_CASE("the records of a batch are read as they were written") {
  const auto compression = GENERATE(Compression::none, Compression::lz4, Compression::zstd);
  const auto count = GENERATE(1, 2, 300);
  // The longest value is more than a block of lz4.
  const auto text = GENERATE(std::string(), std::string("value"), std::string(70'000, 'x'));
  if (text.size() * static_cast<std::size_t>(count) > 1'000'000) return;
  const auto records = some_records(count, text);
  const auto read = read_batch(build_batch(records, {.compression = compression}));
  REQUIRE(read.has_value());
  CHECK(*read == records);
}

TEST_CASE("a batch with a flipped bit is not read") {
  auto batch = build_batch(some_records(3), {.compression = GENERATE(Compression::none, Compression::zstd)});
  batch.back() ^= std::byte{1};
  CHECK_FALSE(read_batch(batch));
}

TEST_CASE("a mirrored topic is the source's byte for byte, in every partition") {
  const auto in_flight = GENERATE(std::size_t{1}, std::size_t{5});
  Clusters clusters(3, 3);
  std::vector<std::vector<Bytes>> sent(3);
  for (int partition = 0; partition < 3; ++partition) {
    for (int i = 0; i < 12; ++i) sent[static_cast<std::size_t>(partition)].push_back(numbered_batch(i, partition - 1));
    produce(clusters.from, partition, sent[static_cast<std::size_t>(partition)]);
  }
  const auto result = clusters.mirror(in_flight);
  CHECK(result.failure.empty());
  CHECK(result.errors.empty());
  CHECK(result.batches == 36);
  CHECK(result.acknowledged == 36);
  CHECK(result.bytes == 36 * sent[0][0].size());
  for (int partition = 0; partition < 3; ++partition)
    CHECK(read_all(clusters.to, partition) == sent[static_cast<std::size_t>(partition)]);
}

TEST_CASE("control batches are left out and counted") {
  Clusters clusters;
  const auto control = build_batch(some_records(1), {.producer_id = 5, .producer_epoch = 0, .is_control = true});
  produce(clusters.from, 0, {numbered_batch(0), control, numbered_batch(1), control});
  const auto result = clusters.mirror();
  CHECK(result.is_complete());
  CHECK(result.batches == 2);
  CHECK(result.control_batches_left_out == 2);
  CHECK(read_all(clusters.to, 0) == std::vector{numbered_batch(0), numbered_batch(1)});
}

TEST_CASE("a transactional batch goes with a transactional id, and no other does") {
  Clusters clusters;
  const auto transactional = build_batch(
      some_records(2), {.producer_id = 5, .producer_epoch = 0, .base_sequence = 0, .is_transactional = true});
  produce(clusters.from, 0, {numbered_batch(0), transactional});
  const auto result = clusters.mirror();
  CHECK(result.acknowledged == 1);
  // The mock looks for the producer of the transactional id, and knows none.
  REQUIRE(result.errors.size() == 1);
  CHECK(result.errors[0].offset == 2);
  CHECK(result.errors[0].code == RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID);
}

TEST_CASE("a batch that is larger than a fetch comes whole") {
  Clusters clusters;
  const std::vector batches{build_batch(some_records(40, std::string(50'000, 'x')), {}), numbered_batch(1)};
  produce(clusters.from, 0, batches);
  auto result = mirror_verbatim({.from = clusters.from.address(),
                                 .to = clusters.to.address(),
                                 .topic = "orders",
                                 .to_topic = "",
                                 .fetch_size = 1000,
                                 .timeout = patience});
  CHECK(result.is_complete());
  CHECK(read_all(clusters.to, 0) == batches);
}

TEST_CASE("an empty topic is mirrored at once") {
  const auto result = Clusters(4).mirror();
  CHECK(result.is_complete());
  CHECK(result.batches == 0);
}

TEST_CASE("a batch whose leader moved is sent again, and the order stays") {
  const auto in_flight = GENERATE(std::size_t{1}, std::size_t{5});
  Clusters clusters;
  std::vector<Bytes> batches;
  for (int i = 0; i < 8; ++i) batches.push_back(numbered_batch(i));
  produce(clusters.from, 0, batches);
  // All from the third on are refused by a broker that leads no more, until the mirror has asked again.
  constexpr auto ok = RD_KAFKA_RESP_ERR_NO_ERROR;
  constexpr auto moved = RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION;
  if (in_flight == 1) {
    clusters.to.push_errors(produce_key, {ok, ok, moved, moved});
  } else {
    clusters.to.push_errors(produce_key, {ok, ok, moved, moved, moved, moved, moved});
  }
  clusters.from.push_errors(fetch_key, {ok, moved});
  const auto result = clusters.mirror(in_flight);
  CHECK(result.is_complete());
  CHECK(result.acknowledged == 8);
  CHECK(read_all(clusters.to, 0) == batches);
}

TEST_CASE("a batch is not sent again behind a later one: that is an error") {
  Clusters clusters;
  const std::vector batches{numbered_batch(0), numbered_batch(1), numbered_batch(2), numbered_batch(3)};
  produce(clusters.from, 0, batches);
  clusters.to.push_errors(produce_key, {RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION});
  const auto result = clusters.mirror(4);
  CHECK(result.batches == 4);
  CHECK(result.acknowledged == 3);
  REQUIRE(result.errors.size() == 1);
  CHECK(result.errors[0].offset == 2);
  CHECK(result.errors[0].code == RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION);
  CHECK(read_all(clusters.to, 0) == std::vector{batches[0], batches[2], batches[3]});
}

TEST_CASE("a refused batch is reported with its place and code, and the rest goes on") {
  Clusters clusters;
  const std::vector batches{numbered_batch(0), numbered_batch(1), numbered_batch(2)};
  produce(clusters.from, 0, batches);
  clusters.to.push_errors(produce_key, {RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER});
  const auto result = clusters.mirror();
  CHECK_FALSE(result.is_complete());
  CHECK(result.failure.empty());
  CHECK(result.batches == 3);
  CHECK(result.acknowledged == 2);
  REQUIRE(result.errors.size() == 1);
  CHECK(result.errors[0].partition == 0);
  CHECK(result.errors[0].offset == 2);
  CHECK(result.errors[0].code == 45);
  CHECK(read_all(clusters.to, 0) == std::vector{batches[0], batches[2]});
}

TEST_CASE("a partition that cannot be read is reported with its place and code") {
  Clusters clusters;
  produce(clusters.from, 0, {numbered_batch(0), numbered_batch(1)});
  clusters.from.push_errors(fetch_key, {RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED});
  const auto result = clusters.mirror();
  CHECK(result.acknowledged == 1);
  REQUIRE(result.errors.size() == 1);
  CHECK(result.errors[0].offset == 2);
  CHECK(result.errors[0].code == 29);
}

TEST_CASE("a connection that ends leaves its batches in the errors and says why") {
  Clusters clusters;
  produce(clusters.from, 0, {numbered_batch(0), numbered_batch(1), numbered_batch(2), numbered_batch(3)});
  clusters.to.push_errors(produce_key, {RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_RESP_ERR__TRANSPORT});
  const auto result = clusters.mirror();
  CHECK_FALSE(result.failure.empty());
  CHECK(result.acknowledged == 1);
  CHECK(result.acknowledged + result.errors.size() == result.batches);
  CHECK(result.errors.front().code == MirrorResult::no_answer);
}

TEST_CASE("a destination with fewer partitions is refused before anything is sent") {
  Clusters clusters;
  clusters.from.create_topic("wide", 3);
  clusters.to.create_topic("wide", 2);
  const auto result =
      mirror_verbatim({.from = clusters.from.address(), .to = clusters.to.address(), .topic = "wide", .to_topic = ""});
  CHECK(result.failure == "the topic has 3 partitions at the source and 2 at the destination");
}

TEST_CASE("addresses are read with and without brackets") {
  CHECK(to_string(parse_address("localhost:9092").value()) == "localhost:9092");
  CHECK(to_string(parse_address("[::1]:9092").value()) == "[::1]:9092");
  for (const auto* text : {"localhost", ":9092", "localhost:", "localhost:70000", "localhost:90x"})
    CHECK_FALSE(parse_address(text));
}
