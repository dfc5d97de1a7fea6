// A verbatim mirror for the tests on real brokers:
//
//   verbatim_mirror --from HOST:PORT --to HOST:PORT --topic T [--to-topic T2] [--transactional-id ID] [--in-flight N]
//
// What was done goes to stdout as one line of JSON, notes to stderr. Exit: 0 all was acknowledged, 1 not so, 2 usage.
#include <charconv>
#include <cstdio>
#include <string_view>

#include "tests/support/verbatim_mirror.hpp"

namespace {

constexpr std::size_t in_flight_max = 5;

bool parse(int argc, char** argv, support::MirrorOptions& options) {
  bool has_from = false;
  bool has_to = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string_view value = argv[i + 1];
    if (name == "--from" || name == "--to") {
      const auto address = support::parse_address(value);
      if (!address) return false;
      (name == "--from" ? options.from : options.to) = *address;
      (name == "--from" ? has_from : has_to) = true;
    } else if (name == "--topic") {
      options.topic = value;
    } else if (name == "--to-topic") {
      options.to_topic = value;
    } else if (name == "--transactional-id") {
      options.transactional_id = value;
    } else if (name == "--in-flight") {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), options.in_flight);
      if (error != std::errc{} || end != value.data() + value.size()) return false;
    } else {
      return false;
    }
  }
  const bool is_sane = options.in_flight >= 1 && options.in_flight <= in_flight_max;
  return argc % 2 == 1 && has_from && has_to && !options.topic.empty() && is_sane;
}

void print(const support::MirrorResult& result) {
  std::printf("{\"batches\": %llu, \"acknowledged\": %llu, \"bytes\": %llu, \"control_batches_left_out\": %llu",
              static_cast<unsigned long long>(result.batches), static_cast<unsigned long long>(result.acknowledged),
              static_cast<unsigned long long>(result.bytes),
              static_cast<unsigned long long>(result.control_batches_left_out));
  std::printf(", \"complete\": %s, \"errors\": [", result.is_complete() ? "true" : "false");
  for (std::size_t i = 0; i < result.errors.size(); ++i)
    std::printf("%s{\"partition\": %d, \"offset\": %lld, \"code\": %d}", i == 0 ? "" : ", ", result.errors[i].partition,
                static_cast<long long>(result.errors[i].offset), result.errors[i].code);
  std::printf("]}\n");
}

}  // namespace

int main(int argc, char** argv) {
  support::MirrorOptions options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: verbatim_mirror --from HOST:PORT --to HOST:PORT --topic T [--to-topic T2]\n"
                 "                       [--transactional-id ID] [--in-flight 1..%zu]\n",
                 in_flight_max);
    return 2;
  }
  const auto result = support::mirror_verbatim(options);
  print(result);
  if (!result.failure.empty()) std::fprintf(stderr, "verbatim_mirror: %s\n", result.failure.c_str());
  return result.is_complete() ? 0 : 1;
}
