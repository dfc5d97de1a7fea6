#include <malloc.h>

#include <chrono>

#include "tests/mapping/identities.hpp"
#include "tests/support/catch.hpp"

namespace mapping {

// Hidden: it means something in a release build alone, where the allocator is glibc's.
TEST_CASE("a million salted identities take at most 150 MB, a claim standing for each", "[.memory]") {
  const auto allocated = [] {
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  constexpr int identities = 1'000'000;
  constexpr int log_partitions = 50;
  const auto before = allocated();
  StateSettings settings;
  settings.partitions = log_partitions;
  settings.process_nonce = 1;
  State state(settings, {a, b});
  std::int64_t offset = 0;
  const auto apply = [&](std::int32_t log_partition, const auto& key, const auto& value) {
    const auto bytes = encode(value);
    CHECK(state.apply(log_partition, offset++, encode(key), ByteView(bytes), noon).kind == Applied::Kind::applied);
  };
  for (std::int32_t log_partition = 0; log_partition < log_partitions; ++log_partition)
    for (const auto& source : {a, b})
      apply(log_partition, RegistrationKey{source.region, source.cluster_id, {}}, RegistrationValue{50, noon});
  const auto start = std::chrono::steady_clock::now();
  for (const bool with_claims : {false, true}) {
    for (int number = 0; number < identities; ++number) {
      CollisionKey key{topic(number % 200), number % 7, b.cluster_id, {number}};
      const auto salt = draw_salt(key, 0);
      const auto home = log_partition_of(key.topic_id, key.partition, log_partitions);
      if (with_claims) {
        Nonce nonce;
        for (std::size_t i = 0; i < 4; ++i) nonce.bytes[i] = static_cast<std::byte>(number >> (8 * i));
        apply(home, ClaimKey{key.topic_id, key.partition, nonce}, ClaimValue{b.cluster_id, {number}, salt, noon});
      } else {
        apply(home, key, CollisionValue{salt, a.cluster_id, noon});
      }
    }
    const auto used = allocated() - before;
    const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    WARN((with_claims ? "with claims: " : "records alone: ") << used / 1'000'000 << " MB, " << took << " s");
    CHECK(used <= 150'000'000);
  }
  CHECK(state.counts().records == identities);
  CHECK(state.counts().claims == identities);
}

}  // namespace mapping
