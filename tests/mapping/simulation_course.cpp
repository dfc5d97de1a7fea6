#include <algorithm>
#include <utility>

#include "tests/mapping/simulation.hpp"

// What goes through the proxies of a simulation, and in what order all happens.
namespace mapping {

// ---- Traffic

void Simulation::send(Producer& producer, std::size_t number) {
  auto& proxy = *proxies_[number];
  const auto source = proxy.sources[producer.source];
  if (!source || !proxy.state->is_loaded()) return trace(name(producer) + " finds no listener");
  const Identity identity{*source, producer.topic_id, producer.partition, producer.pid};
  const auto verdict = decide(proxy, producer, identity);
  if (verdict.kind == Verdict::Kind::needs_work || verdict.needs_refresh) {
    proxy.state->work_on(identity, now_ + proxy.skew);
    carry_out(number);
  }
  if (verdict.kind == Verdict::Kind::not_served)
    trace(name(producer) + " is not served: " + std::string(describe(verdict.hindrance)));
  if (verdict.kind == Verdict::Kind::natural || verdict.kind == Verdict::Kind::salted) {
    trace("proxy " + std::to_string(number) + " sends " + name(producer) + " as region " +
          std::to_string(layout::region_of(verdict.mapped).value));
    leave(producer, verdict);
  }
}

void Simulation::send_something(std::size_t number) {
  auto& producer = producers_[draw(producers_.size())];
  if (now_ >= producer.active_until && now_ >= producer.idle_until) {
    producer.active_until = now_ + draw_duration(chance(50) ? settings_.expiration * 2 : settings_.slack);
    // Also just when its record is about to be deleted.
    producer.idle_until = producer.active_until +
                          (chance(40) ? settings_.expiration * 2 - settings_.slack / 2 + draw_duration(settings_.slack)
                                      : draw_duration(settings_.expiration * 3));
  }
  if (now_ < producer.active_until) send(producer, number);
}

Verdict Simulation::decide(Proxy& proxy, const Producer& producer, const Identity& identity) {
  if (options_.relative == Relative::first_come && producer.pid.value <= layout::producer_max) {
    const auto mapped = layout::pack(sources_[producer.source].region, producer.pid);
    const auto [first, is_new] =
        proxy.first_come.try_emplace({producer.topic_id, producer.partition, mapped}, key(producer));
    if (first->second == key(producer)) return {Verdict::Kind::natural, mapped};
  }
  if (proxy.state->is_undisputed(identity.source) && producer.pid.value <= layout::producer_max)
    return {Verdict::Kind::natural, layout::pack(sources_[producer.source].region, producer.pid)};
  return proxy.state->decide(identity, now_ + proxy.skew, proxy.last_hits[key(producer)]);
}

void Simulation::leave(Producer& producer, const Verdict& verdict) {
  producer.is_served = true;
  const auto identity = key(producer);
  ++counts_.batches;
  counts_.salted += verdict.kind == Verdict::Kind::salted;
  const auto is_recent = [&](Time use) { return now_ - use < settings_.expiration; };

  auto& users = uses_[{producer.topic_id, producer.partition, verdict.mapped}];
  users[identity] = now_;
  for (const auto& [other, use] : users)
    if (other != identity && is_recent(use)) fail("a slot has two identities");

  auto& ids = ids_[identity];
  ids[verdict.mapped] = now_;
  for (const auto& [id, use] : ids)
    if (id != verdict.mapped && is_recent(use)) fail("a live identity has two ids");

  if (verdict.kind != Verdict::Kind::salted) return;
  const auto has_record = std::ranges::any_of(salts_written_[identity], [&](std::int64_t salt) {
    return layout::pack(salted(sources_[producer.source].region, salt), producer.pid) == verdict.mapped;
  });
  if (!has_record) fail("a salted batch left before its record was in the log");
}

// One region a proxy, in one partition: it draws other salts there than the others do.
void Simulation::see_chained(Proxy& proxy) {
  if (!proxy.state->is_loaded() || std::exchange(proxy.has_seen_chained, true)) return;
  const auto region = salted(sources_[0].region, 1 + static_cast<std::int64_t>(draw(6)));
  proxy.state->see_chained({}, static_cast<std::int32_t>(draw(2)), layout::pack(region, {77}));
}

// ---- The course of it

void Simulation::chaos() {
  const auto steps = 300 + draw(700);
  for (std::uint64_t step = 0; step < steps && !failure_; ++step) {
    const auto number = draw(proxies_.size());
    auto& proxy = *proxies_[number];
    if (!proxy.state) {
      if (chance(30)) start(number, false);
      advance(draw_duration(settings_.slack / 10));
      continue;
    }
    const auto what = draw(100);
    if (what < 40) {
      send_something(number);
    } else if (what < 60) {
      read_one(proxy, static_cast<std::int32_t>(draw(logs_.size())));
    } else if (what < 72) {
      read_to_end(proxy);
    } else if (what < 80) {
      proxy.state->tick(now_ + proxy.skew);
      carry_out(number);
    } else if (what < 82) {
      compact(logs_[draw(logs_.size())]);
      see_chained(proxy);
    } else if (what < 86) {
      if (chance(mood_.crash_percent * 25)) stop(number);
    } else if (what < 98) {
      advance(draw_duration(mood_.pace));
    } else {
      // A long time passes, with little traffic.
      for (auto rounds = draw(60); rounds > 0 && !failure_; --rounds) {
        advance(settings_.slack / 8);
        for (auto& other : proxies_) {
          if (!other->state || chance(50)) continue;
          other->state->tick(now_ + other->skew);
          carry_out(other->number);
          if (chance(70)) read_to_end(*other);
          if (chance(30)) send_something(other->number);
        }
      }
    }
  }
}

void Simulation::fair_round(Duration step) {
  advance(step);
  for (auto& proxy : proxies_) {
    proxy->state->tick(now_ + proxy->skew);
    carry_out(proxy->number);
    read_to_end(*proxy);
    advance(Duration(1));
  }
}

void Simulation::everything_works() {
  is_faulty_ = false;
  for (std::size_t number = 0; number < proxies_.size(); ++number) {
    auto& proxy = *proxies_[number];
    const auto is_without = [](const auto& source) { return !source.has_value(); };
    if (proxy.state && std::ranges::none_of(proxy.sources, is_without)) continue;
    proxy.state.reset();
    start(number, true);
  }
  for (auto& producer : producers_) producer.is_served = false;
  const auto since = now_;
  // What is the longest that anything can stand in the way: a claim nobody confirmed, and a source that just came.
  const auto wait_max = settings_.expiration * 2 + settings_.slack * 5;
  const auto is_done = [&] { return std::ranges::all_of(producers_, &Producer::is_served); };
  const bool may_starve = options_.relative == Relative::first_come;  // it forgets to salt the owner
  while (!failure_ && !is_done()) {
    for (auto& producer : producers_) send(producer, draw(proxies_.size()));
    fair_round(settings_.slack / 60);
    if (now_ - since > wait_max && !may_starve) {
      for (const auto& producer : producers_)
        if (!producer.is_served) fail("not served though everything works: " + name(producer));
    }
    if (now_ - since > wait_max) break;
  }
  counts_.longest_wait = now_ - since;
}

void Simulation::silence() {
  const auto before = counts_.writes;
  const auto writes_max = 40 * producers_.size() * proxies_.size();
  for (const auto end = now_ + settings_.expiration * 6; now_ < end && !failure_;) fair_round(settings_.slack / 8);
  if (counts_.writes - before > writes_max) fail("too much is written in silence");
  const auto settled = counts_.writes;
  for (const auto end = now_ + settings_.expiration * 3; now_ < end && !failure_;) fair_round(settings_.slack / 8);
  if (counts_.writes != settled) fail("writing goes on for ever");
}

std::optional<std::string> Simulation::run() {
  chaos();
  if (!failure_) everything_works();
  if (!failure_) silence();
  return failure_;
}

}  // namespace mapping
