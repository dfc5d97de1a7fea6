#include "codec/record_batch.hpp"

#include <span>

#include "codec/crc32c.hpp"

namespace codec {

bool RecordsEntryHead::is_well_formed() const {
  constexpr std::int32_t legacy_length_min = 14;  // checksum, magic, attributes, and the lengths of key and value
  constexpr auto batch_length_min = static_cast<std::int32_t>(sizeof(RecordBatchHeader)) - bytes_before_length_counts;
  switch (magic) {
    case 0:
    case 1: return length >= legacy_length_min;
    case 2: return length >= batch_length_min;
    default: return false;
  }
}

void rewrite_producer_id(RecordBatchHeader& batch, std::int64_t producer_id) {
  constexpr auto end_of_producer_id = offsetof(RecordBatchHeader, producer_epoch);
  const auto before = batch.producer_id;
  batch.producer_id = producer_id;
  batch.crc = crc32c_patch(batch.crc, std::as_bytes(std::span<const boost::endian::big_int64_t, 1>(&before, 1)),
                           std::as_bytes(std::span<const boost::endian::big_int64_t, 1>(&batch.producer_id, 1)),
                           static_cast<std::uint64_t>(batch.size()) - end_of_producer_id);
}

void make_refusable(RecordBatchHeader& batch) {
  batch.base_offset = 1;
}

}  // namespace codec
