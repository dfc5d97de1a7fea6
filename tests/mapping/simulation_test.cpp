#include <cstdlib>
#include <string>

#include "tests/mapping/simulation.hpp"
#include "tests/support/catch.hpp"

namespace mapping {
namespace {

// MIRRORPID_SIMULATION_SEEDS: how many; the default is for a test run of seconds. MIRRORPID_SIMULATION_SEED: that one
// alone, told event by event.
std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::stoull(text) : otherwise;
}

std::optional<std::string> first_failure(Relative relative, int proxies, std::uint64_t seeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed)
    if (auto failure = Simulation({seed, proxies, relative}).run()) return failure;
  return std::nullopt;
}

}  // namespace

TEST_CASE("proxies that crash, lag and write late never share a slot, nor change a live id, and all go on") {
  const auto only = number_from("MIRRORPID_SIMULATION_SEED", 0);
  const auto seeds = number_from("MIRRORPID_SIMULATION_SEEDS", 100);
  const int proxies = GENERATE(2, 3);
  CAPTURE(proxies);
  Simulation::Counts total;
  for (std::uint64_t seed = only ? only : 1; seed <= (only ? only : seeds); ++seed) {
    Simulation simulation({seed, proxies, Relative::none, only != 0});
    const auto failure = simulation.run();
    INFO(failure.value_or(""));
    REQUIRE_FALSE(failure);
    const auto& counts = simulation.counts();
    total.batches += counts.batches;
    total.salted += counts.salted;
    total.crashes += counts.crashes;
    total.lost_claims += counts.lost_claims;
    total.tombstones += counts.tombstones;
  }
  if (only) return;
  // It is no proof when nothing happens.
  CHECK(total.batches > seeds * 100);
  CHECK(total.salted > seeds * 100);
  CHECK(total.crashes > seeds);
  CHECK(total.lost_claims > seeds / 10);
  CHECK(total.tombstones > seeds);
}

TEST_CASE("the simulation catches the protocol's simpler relatives") {
  const auto relative = GENERATE(Relative::acknowledged_claim, Relative::first_come, Relative::first_record_wins,
                                 Relative::tombstones_at_e);
  const auto failure = first_failure(relative, 2, 200);
  CAPTURE(static_cast<int>(relative));
  CHECK(failure);
}

}  // namespace mapping
