#pragma once
#include <boost/endian/arithmetic.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace codec {

// The fixed head of a record batch of magic 2, laid over the wire bytes.
// https://kafka.apache.org/documentation/#recordbatch
//
//   0        8     12      16  17    21    23    27      35    43    51   53    57      61
//   | offset | len | epoch | m | crc | att | lst | first | max | pid | ep | seq | count | records
//                                    |<-- covered by the crc, to the end of the batch ...
struct RecordBatchHeader {
  boost::endian::big_int64_t base_offset;
  boost::endian::big_int32_t batch_length;  // bytes after this field
  boost::endian::big_int32_t partition_leader_epoch;
  boost::endian::big_int8_t magic;
  boost::endian::big_uint32_t crc;
  boost::endian::big_int16_t attributes;
  boost::endian::big_int32_t last_offset_delta;
  boost::endian::big_int64_t base_timestamp;
  boost::endian::big_int64_t max_timestamp;
  boost::endian::big_int64_t producer_id;
  boost::endian::big_int16_t producer_epoch;
  boost::endian::big_int32_t base_sequence;
  boost::endian::big_int32_t record_count;

  static constexpr std::int16_t transactional_bit = 0x10;
  static constexpr std::int16_t control_bit = 0x20;

  bool is_transactional() const { return (attributes & transactional_bit) != 0; }
  bool is_control() const { return (attributes & control_bit) != 0; }
  // Bytes of the whole batch.
  std::int64_t size() const;
};

static_assert(sizeof(RecordBatchHeader) == 61 && alignof(RecordBatchHeader) == 1);
static_assert(offsetof(RecordBatchHeader, crc) == 17);
static_assert(offsetof(RecordBatchHeader, attributes) == 21);
static_assert(offsetof(RecordBatchHeader, producer_id) == 43);
static_assert(std::is_trivially_copyable_v<RecordBatchHeader>);

// What the entries of a records field have in common in every format, up to the magic that tells them apart.
struct RecordsEntryHead {
  boost::endian::big_int64_t offset;
  boost::endian::big_int32_t length;   // bytes after this field
  boost::endian::big_int32_t differs;  // magic 2: the leader's epoch; before: a checksum
  boost::endian::big_int8_t magic;

  static constexpr std::int64_t bytes_before_length_counts = 12;

  std::int64_t size() const { return std::int64_t{length.value()} + bytes_before_length_counts; }
  // Whether the length can be true for the magic; brokers refuse the others as corrupt.
  bool is_well_formed() const;
};
static_assert(sizeof(RecordsEntryHead) == 17 && alignof(RecordsEntryHead) == 1);

inline std::int64_t RecordBatchHeader::size() const {
  return std::int64_t{batch_length.value()} + RecordsEntryHead::bytes_before_length_counts;
}

// Replaces the producer ID and repairs the checksum without reading the records (see crc32c_patch): a batch that
// arrived corrupt stays corrupt, and the broker still refuses it. The header must be well formed.
void rewrite_producer_id(RecordBatchHeader& batch, std::int64_t producer_id);

// Makes every broker answer INVALID_RECORD (87) for the batch's partition and nothing else: a client's batch begins at
// offset 0, and the offset is not covered by the checksum.
void make_refusable(RecordBatchHeader& batch);

}  // namespace codec
