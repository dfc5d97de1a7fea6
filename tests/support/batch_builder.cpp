#include "tests/support/batch_builder.hpp"

#include <lz4frame.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "codec/crc32c.hpp"
#include "codec/cursor.hpp"
#include "codec/frame.hpp"
#include "codec/record_batch.hpp"
#include "codec/writer.hpp"

namespace support {
namespace {

using codec::RecordBatchHeader;
using Bytes = std::vector<std::byte>;

constexpr std::int16_t compression_mask = 7;
constexpr std::size_t decompressed_max = 64 << 20;

// Inside of records, lengths and differences are zigzag varints.
void append_varint(codec::Writer& out, std::int64_t value) {
  auto bits = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
  for (; bits >= 0x80; bits >>= 7) out.integer(static_cast<std::uint8_t>(bits | 0x80));
  out.integer(static_cast<std::uint8_t>(bits));
}

std::int64_t read_varint(codec::Cursor& in) {
  std::uint64_t bits = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = in.integer<std::uint8_t>();
    bits |= std::uint64_t{byte & 0x7fU} << shift;
    if ((byte & 0x80) == 0) return static_cast<std::int64_t>(bits >> 1) ^ -static_cast<std::int64_t>(bits & 1);
  }
  in.fail(codec::Cursor::State::malformed);
  return 0;
}

void append_text(codec::Writer& out, const std::string& text) {
  append_varint(out, static_cast<std::int64_t>(text.size()));
  out.raw(std::as_bytes(std::span(text)));
}

// Null is nothing.
std::optional<std::string> read_text(codec::Cursor& in) {
  const auto size = read_varint(in);
  if (size < 0) return std::nullopt;
  const auto bytes = in.take(static_cast<std::size_t>(size));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Bytes encode(const Record& record, std::int64_t base_timestamp, std::int64_t offset_delta) {
  codec::Writer body(false);
  body.integer(std::int8_t{0});
  append_varint(body, record.timestamp - base_timestamp);
  append_varint(body, offset_delta);
  if (record.key) {
    append_text(body, *record.key);
  } else {
    append_varint(body, -1);
  }
  append_text(body, record.value);
  append_varint(body, 0);  // headers
  codec::Writer out(false);
  append_varint(out, static_cast<std::int64_t>(body.data().size()));
  return std::move(out.raw(body.data()).data());
}

std::optional<Record> decode(codec::Cursor& in, std::int64_t base_timestamp) {
  const auto size = read_varint(in);
  const auto begin = in.position();
  in.integer<std::int8_t>();
  Record record{base_timestamp + read_varint(in), {}, {}};
  read_varint(in);
  record.key = read_text(in);
  record.value = read_text(in).value_or("");
  for (auto headers = read_varint(in); headers > 0 && in.good(); --headers) {
    read_text(in);
    read_text(in);
  }
  if (!in.good() || std::cmp_not_equal(in.position() - begin, size)) return std::nullopt;
  return record;
}

Bytes compress(const Bytes& records, Compression compression) {
  Bytes out;
  switch (compression) {
    case Compression::none: return records;
    case Compression::lz4: {
      LZ4F_preferences_t preferences{};
      preferences.frameInfo.blockMode = LZ4F_blockIndependent;  // Kafka reads no other
      out.resize(LZ4F_compressFrameBound(records.size(), &preferences));
      out.resize(LZ4F_compressFrame(out.data(), out.size(), records.data(), records.size(), &preferences));
      return out;
    }
    case Compression::zstd:
      out.resize(ZSTD_compressBound(records.size()));
      out.resize(ZSTD_compress(out.data(), out.size(), records.data(), records.size(), ZSTD_CLEVEL_DEFAULT));
      return out;
  }
  return out;
}

std::optional<Bytes> decompress_lz4(std::span<const std::byte> in) {
  LZ4F_dctx* context = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)) != 0) return std::nullopt;
  const std::unique_ptr<LZ4F_dctx, decltype(&LZ4F_freeDecompressionContext)> owner(context,
                                                                                   &LZ4F_freeDecompressionContext);
  Bytes out;
  std::size_t missing = 1;
  while (missing > 0 && out.size() < decompressed_max) {
    constexpr std::size_t step = 64 << 10;
    const auto begin = out.size();
    out.resize(begin + step);
    std::size_t written = step;
    std::size_t read = in.size();
    missing = LZ4F_decompress(context, out.data() + begin, &written, in.data(), &read, nullptr);
    out.resize(begin + written);
    in = in.subspan(read);
    if (LZ4F_isError(missing) != 0 || (missing > 0 && written == 0 && read == 0)) return std::nullopt;
  }
  if (missing > 0) return std::nullopt;
  return out;
}

std::optional<Bytes> decompress_zstd(std::span<const std::byte> in) {
  const auto size = ZSTD_getFrameContentSize(in.data(), in.size());
  if (size > decompressed_max) return std::nullopt;  // both of the values for an error too
  Bytes out(size);
  if (ZSTD_decompress(out.data(), out.size(), in.data(), in.size()) != size) return std::nullopt;
  return out;
}

std::optional<Bytes> decompress(std::span<const std::byte> in, int compression) {
  switch (static_cast<Compression>(compression)) {
    case Compression::none: return Bytes(in.begin(), in.end());
    case Compression::lz4: return decompress_lz4(in);
    case Compression::zstd: return decompress_zstd(in);
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::byte> build_batch(std::span<const Record> records, const BatchOptions& options) {
  Bytes encoded;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto one = encode(records[i], records[0].timestamp, static_cast<std::int64_t>(i));
    encoded.insert(encoded.end(), one.begin(), one.end());
  }
  const auto payload = compress(encoded, options.compression);

  RecordBatchHeader header{};
  header.magic = 2;
  header.partition_leader_epoch = -1;
  header.attributes = static_cast<std::int16_t>(static_cast<int>(options.compression) |
                                                (options.is_transactional ? RecordBatchHeader::transactional_bit : 0) |
                                                (options.is_control ? RecordBatchHeader::control_bit : 0));
  header.last_offset_delta = static_cast<std::int32_t>(records.size() - 1);
  header.base_timestamp = records[0].timestamp;
  header.max_timestamp = std::ranges::max(records, {}, &Record::timestamp).timestamp;
  header.producer_id = options.producer_id;
  header.producer_epoch = options.producer_epoch;
  header.base_sequence = options.base_sequence;
  header.record_count = static_cast<std::int32_t>(records.size());
  header.batch_length =
      static_cast<std::int32_t>(sizeof header + payload.size() - codec::RecordsEntryHead::bytes_before_length_counts);

  Bytes batch(sizeof header);
  batch.insert(batch.end(), payload.begin(), payload.end());
  codec::store(std::span(batch), header);
  header.crc = codec::crc32c(std::span(batch).subspan(offsetof(RecordBatchHeader, attributes)));
  codec::store(std::span(batch), header);
  return batch;
}

std::optional<std::vector<Record>> read_batch(std::span<const std::byte> batch) {
  if (batch.size() < sizeof(RecordBatchHeader)) return std::nullopt;
  const auto header = codec::load<RecordBatchHeader>(batch);
  if (header.magic != 2 || std::cmp_not_equal(header.size(), batch.size())) return std::nullopt;
  if (codec::crc32c(batch.subspan(offsetof(RecordBatchHeader, attributes))) != header.crc) return std::nullopt;

  auto payload = decompress(batch.subspan(sizeof header), header.attributes & compression_mask);
  if (!payload) return std::nullopt;
  codec::Cursor in(*payload);
  std::vector<Record> records;
  for (std::int32_t i = 0; i < header.record_count; ++i) {
    auto record = decode(in, header.base_timestamp);
    if (!record) return std::nullopt;
    records.push_back(std::move(*record));
  }
  if (in.remaining() > 0) return std::nullopt;
  return records;
}

}  // namespace support
