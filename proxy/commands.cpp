#include "proxy/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <cstdio>

#include "mapping/cluster_id.hpp"
#include "mapping/pid_mapper.hpp"
#include "proxy/configuration.hpp"
#include "proxy/dial.hpp"
#include "proxy/server.hpp"

namespace proxy {
namespace {

using mapping::ProducerId;
namespace json = boost::json;

void print(const std::string& line) {
  std::printf("%s\n", line.c_str());
}
void complain(const std::string& line) {
  std::fprintf(stderr, "mirrorpid: %s\n", line.c_str());
}

std::string hexadecimal(ProducerId pid) {
  return fmt::format("0x{:016x}", static_cast<std::uint64_t>(pid.value));
}

// Decimal with a sign, or the 64 bits in hexadecimal.
std::optional<ProducerId> parse_pid(const std::string& text) {
  const auto* end = text.data() + text.size();
  if (text.starts_with("0x") || text.starts_with("0X")) {
    std::uint64_t bits = 0;
    const auto [at, error] = std::from_chars(text.data() + 2, end, bits, 16);
    if (error != std::errc{} || at != end) return std::nullopt;
    return ProducerId{static_cast<std::int64_t>(bits)};
  }
  ProducerId pid{0};
  const auto [at, error] = std::from_chars(text.data(), end, pid.value);
  if (error != std::errc{} || at != end) return std::nullopt;
  return pid;
}

// Nothing: a text was no producer id, which has been said.
std::optional<std::vector<ProducerId>> parse_pids(const std::vector<std::string>& texts) {
  std::vector<ProducerId> pids;
  for (const auto& text : texts) {
    const auto pid = parse_pid(text);
    if (!pid) {
      complain(fmt::format("'{}' is no producer id: write 64 bits, decimal or in hexadecimal behind 0x", text));
      return std::nullopt;
    }
    pids.push_back(*pid);
  }
  if (!pids.empty()) return pids;
  complain("name at least one producer id");
  return std::nullopt;
}

// What a batch with this id becomes, for a person and for a program.
struct Mapped {
  std::string_view action;
  std::optional<ProducerId> pid;  // nothing: such a batch is refused
  std::string note;
};

Mapped map_one(const mapping::PidMapper& mapper, ProducerId pid) {
  const auto decision = mapper.decide({pid, 0, 0, false, false});
  switch (decision.action) {
    case mapping::Action::pass:
      return {"pass", decision.pid, pid == mapping::no_producer_id ? "no producer" : "mapped already; stays as it is"};
    case mapping::Action::unmark: return {"unmark", decision.pid, "the destination's own id, marked by a proxy"};
    case mapping::Action::refuse: return {"refuse", std::nullopt, std::string(describe(decision.refusal))};
    case mapping::Action::map:
    case mapping::Action::defer: break;  // the mapper by itself defers nothing
  }
  if (!decision.is_possible_alias) return {"map", decision.pid, ""};
  return {"map", decision.pid,
          fmt::format("past 31 bits: producer {} of this source is mapped to the same",
                      mapping::layout::producer_of(decision.pid).value)};
}

struct Decoded {
  std::string_view kind;
  std::optional<mapping::Region> region;
  std::optional<ProducerId> producer;
  std::string text;
};

Decoded decode_one(ProducerId pid) {
  if (pid == mapping::no_producer_id) return {"none", {}, {}, "no producer (a batch without idempotence)"};
  if (pid.value < 0) {
    const auto region = mapping::layout::region_of(pid);
    const auto producer = mapping::layout::producer_of(pid);
    auto text = fmt::format("mapped: region {} (0x{:08x}), producer {} at the source", region.value, region.value,
                            producer.value);
    // -(pid + 2), an older way of mirroring, gives small negative numbers, which all lie in the last region.
    if (region.value == UINT32_MAX)
      text += fmt::format("; or, from a tool that writes -(id + 2), producer {}", -(pid.value + 2));
    return {"mapped", region, producer, text};
  }
  if (mapping::mark::is_on(pid)) {
    const auto producer = mapping::mark::cleared(pid);
    return {
        "marked",
        {},
        producer,
        fmt::format("the destination's own id {}, marked by a proxy for its client (bit 62); the destination itself "
                    "knows it without the mark",
                    producer.value)};
  }
  return {"unmapped", {}, pid, "as a cluster hands it out; no proxy has mapped it"};
}

}  // namespace

int check(const std::string& config_path, bool connect, Format format) {
  const auto config = load_configuration(config_path);
  if (!config) return exit_usage;
  ClusterMap::Nodes nodes;
  if (connect) {
    constexpr std::chrono::seconds timeout{10};
    if (const auto error = ClusterWatcher::ask_once(config->destination, timeout, nodes); !error.empty()) {
      constexpr std::chrono::seconds connect_timeout{3};
      complain("the destination does not answer: " + error + "; " +
               explain_unreachable(config->destination, connect_timeout));
      return exit_failed;
    }
  }
  json::array sources;
  json::array findings;
  for (const auto& source : config->sources) {
    const auto region = region_of(source)->value;
    const auto listeners = node_listeners(source);
    if (format == Format::text)
      print(fmt::format("source {}: cluster {}, region {} (0x{:08x}), listens on {}, nodes {}..{} on {} ports",
                        source.name, source.cluster_id, region, region, to_string(source.listen),
                        listeners.front().node_id, listeners.back().node_id, listeners.size()));
    sources.push_back({{"name", source.name},
                       {"cluster_id", source.cluster_id},
                       {"region", region},
                       {"listen", to_string(source.listen)},
                       {"node_listeners", listeners.size()}});
    for (const auto& [node_id, address] : nodes) {
      if (std::ranges::any_of(listeners, [&](const auto& listener) { return listener.node_id == node_id; })) continue;
      complain(fmt::format("node {} of the destination ({}) has no listener for source {}: widen its `nodes`", node_id,
                           to_string(address), source.name));
      findings.push_back({{"source", source.name}, {"node_without_listener", node_id}});
    }
  }
  json::array found;
  for (const auto& [node_id, address] : nodes) {
    if (format == Format::text) print(fmt::format("destination node {}: {}", node_id, to_string(address)));
    found.push_back({{"id", node_id}, {"address", to_string(address)}});
  }
  if (format == Format::json) {
    json::object all{{"file", config_path}, {"sources", sources}};
    all["findings"] = findings;
    if (connect) all["destination_nodes"] = found;
    print(json::serialize(all));
  } else if (findings.empty()) {
    print(config_path + ": no problems");
  }
  return findings.empty() ? exit_done : exit_findings;
}

int map(const MapOptions& options) {
  auto region = options.region;
  if (!region) {
    const auto id = mapping::ClusterId::parse(options.cluster_id);
    if (!id) {
      complain(fmt::format("cluster id '{}' is no UUID in 22 characters of base64url: name the source's --region",
                           options.cluster_id));
      return exit_usage;
    }
    region = id->region().value;
  }
  const auto pids = parse_pids(options.pids);
  if (!pids) return exit_usage;
  const mapping::PidMapper mapper({*region});
  json::array all;
  for (const auto pid : *pids) {
    const auto mapped = map_one(mapper, pid);
    const auto note = mapped.note.empty() ? "" : "  (" + mapped.note + ")";
    if (options.format == Format::text)
      print(mapped.pid ? fmt::format("{} -> {} {}{}", pid.value, mapped.pid->value, hexadecimal(*mapped.pid), note)
                       : fmt::format("{} -> refused{}", pid.value, note));
    json::object entry{{"pid", std::to_string(pid.value)}, {"action", mapped.action.data()}, {"region", *region}};
    if (mapped.pid) {
      entry["mapped"] = std::to_string(mapped.pid->value);
      entry["mapped_hex"] = hexadecimal(*mapped.pid);
    }
    if (!mapped.note.empty()) entry["note"] = mapped.note;
    all.push_back(std::move(entry));
  }
  if (options.format == Format::json) print(json::serialize(all));
  return exit_done;
}

int decode(const std::vector<std::string>& texts, Format format) {
  const auto pids = parse_pids(texts);
  if (!pids) return exit_usage;
  json::array all;
  for (const auto pid : *pids) {
    const auto decoded = decode_one(pid);
    if (format == Format::text) print(fmt::format("{} {}  {}", pid.value, hexadecimal(pid), decoded.text));
    json::object entry{
        {"pid", std::to_string(pid.value)}, {"pid_hex", hexadecimal(pid)}, {"kind", decoded.kind.data()}};
    if (decoded.region) entry["region"] = decoded.region->value;
    if (decoded.producer) entry["producer"] = std::to_string(decoded.producer->value);
    all.push_back(std::move(entry));
  }
  if (format == Format::json) print(json::serialize(all));
  return exit_done;
}

}  // namespace proxy
