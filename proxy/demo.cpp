#include "proxy/demo.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codec/frame.hpp"
#include "codec/record_batch.hpp"
#include "mapping/cluster_id.hpp"
#include "proxy/commands.hpp"
#include "proxy/log.hpp"
#include "proxy/server.hpp"
#include "tests/support/batch_builder.hpp"
#include "tests/support/loopback_ports.hpp"
#include "tests/support/mock_cluster.hpp"
#include "tests/support/topic_client.hpp"
#include "tests/support/verbatim_mirror.hpp"

namespace proxy {
namespace {

namespace json = boost::json;
using codec::RecordBatchHeader;
using Bytes = std::vector<std::byte>;

constexpr std::chrono::seconds patience{10};
constexpr std::int64_t source_pid = 5;
constexpr const char* topic = "orders";
constexpr const char* topic_without = "orders-without-mirrorpid";
// Of the cluster in the middle of the chain.
constexpr const char* middle_cluster_id = "bWlycm9ycGlkLWRlbW8tQg";

// A source and what its producer has become. The ids that are expected were computed by hand, not by the mapping that
// they judge: bit 63, the region, the producer.
struct SourceStory {
  std::string name;
  std::string cluster_id;
  std::uint32_t region;
  std::uint64_t expected_pid;
  std::vector<Bytes> batches = {};
  std::optional<std::int64_t> pid_without = {};  // at the destination, without the proxy
  std::optional<std::int64_t> pid_with = {};     // at the destination, through the proxy
  std::optional<std::int64_t> pid_at_end = {};   // at the end of the chain
};

std::string hexadecimal(std::int64_t pid) {
  return fmt::format("0x{:016x}", static_cast<std::uint64_t>(pid));
}

// A proxy in front of a cluster of this process, as `mirrorpid serve` runs it.
class DemoProxy {
 public:
  explicit DemoProxy(const support::MockCluster& destination) : brokers_(destination.brokers()) {
    config_.destination.bootstrap_servers = {{destination.address().host, destination.address().port}};
    config_.limits.threads = 1;
    config_.state.reset();  // the destination in the process has no topic ids, and these sources share no region
  }

  void add_source(const std::string& name, const std::string& cluster_id) {
    config::Source source;
    source.name = name;
    source.cluster_id = cluster_id;
    source.listen = {"127.0.0.1", ports_.take()};
    for (int node = 1; node <= brokers_; ++node) {
      const auto port = ports_.take();
      source.nodes.map[node] = {{"127.0.0.1", port}, port};
    }
    config_.sources.push_back(std::move(source));
  }

  // Why it cannot; empty: it has begun to serve.
  std::string start() { return server_.emplace(config_).start(); }

  support::Address listener(std::size_t source) const {
    return {config_.sources[source].listen.host, config_.sources[source].listen.port};
  }

 private:
  int brokers_;
  support::LoopbackPorts ports_;
  config::Config config_;
  std::optional<Server> server_;
};

// The batches of a source's producer: sequences from 0 on, as every producer numbers its own.
std::vector<Bytes> make_batches(const std::string& source) {
  constexpr std::int64_t first_timestamp = 1'700'000'000'000;
  constexpr int records_a_batch = 4;
  std::vector<Bytes> batches;
  std::int32_t sequence = 0;
  for (const auto compression : {support::Compression::none, support::Compression::lz4, support::Compression::zstd}) {
    std::vector<support::Record> records;
    for (int i = 0; i < records_a_batch; ++i)
      records.push_back({first_timestamp + sequence + i, fmt::format("customer-{}", i),
                         fmt::format("{{\"order\": {}, \"placed_in\": \"{}\"}}", sequence + i, source)});
    batches.push_back(support::build_batch(
        records,
        {.producer_id = source_pid, .producer_epoch = 0, .base_sequence = sequence, .compression = compression}));
    sequence += records_a_batch;
  }
  return batches;
}

// The story, step by step. A step that cannot be done leaves a problem, and the steps after it are not taken.
class Demo {
 public:
  // By the ids of two public container images.
  std::vector<SourceStory> sources{
      {"eu-west", "MkU3OEVBNTcwNTJENDM2Qg", 0x71720375, 0xb8b901ba80000005},
      {"us-east", "4L6g3nShT-eMCtK--X86sw", 0x8dde7554, 0xc6ef3aaa00000005},
  };
  std::vector<std::string> problems;

  void run() {
    destination_.create_topic(topic, 1);
    destination_.create_topic(topic_without, 1);
    end_.create_topic(topic, 1);
    if (produce() && mirror_without() && mirror_through() && mirror_on()) check();
  }

 private:
  bool fail(std::string problem) {
    problems.push_back(std::move(problem));
    return false;
  }

  bool produce() {
    for (std::size_t i = 0; i < sources.size(); ++i) {
      clusters_[i].create_topic(topic, 1);
      sources[i].batches = make_batches(sources[i].name);
      support::TopicClient client(clusters_[i].address(), topic, patience);
      if (const auto asked = client.refresh(patience); !asked) return fail(asked.error().reason);
      const auto leader = client.leader(0);
      if (!leader) return fail(leader.error().reason);
      for (const auto& batch : sources[i].batches) {
        const auto sent = client.send_produce(**leader, 0, batch, "");
        if (!sent) return fail(sent.error().reason);
        const auto produced = support::TopicClient::receive_produce(**leader, *sent);
        if (!produced) return fail(produced.error().reason);
        if (produced->error_code != support::error_none)
          return fail(fmt::format("{} refused a batch of its producer: {}", sources[i].name, produced->error_code));
      }
    }
    return true;
  }

  bool mirror(const support::Address& from, const support::Address& to, const char* to_topic) {
    const auto result = support::mirror_verbatim(
        {.from = from, .to = to, .topic = topic, .to_topic = to_topic, .timeout = patience, .patience = patience});
    if (!result.failure.empty()) return fail("mirroring stopped: " + result.failure);
    for (const auto& error : result.errors)
      fail(fmt::format("mirroring: partition {}, offset {}: error {}", error.partition, error.offset, error.code));
    return result.is_complete();
  }

  bool mirror_without() {
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (!mirror(clusters_[i].address(), destination_.address(), topic_without)) return false;
    return read_back(destination_, topic_without, &SourceStory::pid_without);
  }

  bool mirror_through() {
    DemoProxy proxy(destination_);
    for (const auto& source : sources) proxy.add_source(source.name, source.cluster_id);
    if (const auto error = proxy.start(); !error.empty()) return fail(error);
    for (std::size_t i = 0; i < sources.size(); ++i)
      if (!mirror(clusters_[i].address(), proxy.listener(i), topic)) return false;
    return read_back(destination_, topic, &SourceStory::pid_with);
  }

  // From the destination, which is a source to the next cluster, through a proxy of that one.
  bool mirror_on() {
    DemoProxy proxy(end_);
    proxy.add_source("middle", middle_cluster_id);
    if (const auto error = proxy.start(); !error.empty()) return fail(error);
    return mirror(destination_.address(), proxy.listener(0), topic) && read_back(end_, topic, &SourceStory::pid_at_end);
  }

  // Reads what a topic holds, and finds every source's batches in it: all there once, and nothing else.
  bool read_back(const support::MockCluster& cluster, const char* name,
                 std::optional<std::int64_t> SourceStory::* pid) {
    support::TopicClient client(cluster.address(), name, patience);
    if (const auto asked = client.refresh(patience); !asked) return fail(asked.error().reason);
    const auto end = client.list_offset(0, support::TopicClient::Offset::latest);
    if (!end) return fail(end.error().reason);
    std::size_t found = 0;
    for (std::int64_t offset = 0; offset < end->offset;) {
      const auto fetched = client.fetch(0, offset, 1 << 20);
      if (!fetched) return fail(fetched.error().reason);
      auto rest = std::span(fetched->records);
      if (rest.size() < sizeof(RecordBatchHeader)) return fail(fmt::format("nothing to read at {}/{}", name, offset));
      const auto header = codec::load<RecordBatchHeader>(rest);
      if (std::cmp_less(rest.size(), header.size())) return fail(fmt::format("half a batch at {}/{}", name, offset));
      if (!recognise(rest.first(static_cast<std::size_t>(header.size())), pid))
        return fail(fmt::format("the batch at {}/{} is not what a source sent", name, offset));
      offset = header.base_offset + header.last_offset_delta + 1;
      ++found;
    }
    const auto expected = sources[0].batches.size() + sources[1].batches.size();
    return found == expected || fail(fmt::format("{} has {} batches instead of {}", name, found, expected));
  }

  // A batch is known by all that may not change: everything from the attributes on but the producer id. Its checksum
  // must be right, and its producer the one of the batches before it.
  bool recognise(std::span<const std::byte> batch, std::optional<std::int64_t> SourceStory::* pid) {
    constexpr auto begin = offsetof(RecordBatchHeader, attributes);
    constexpr auto pid_begin = offsetof(RecordBatchHeader, producer_id);
    constexpr auto pid_end = offsetof(RecordBatchHeader, producer_epoch);
    const auto is_same = [&](const Bytes& sent) {
      const auto of = std::span<const std::byte>(sent);
      return std::ranges::equal(of.subspan(begin, pid_begin - begin), batch.subspan(begin, pid_begin - begin)) &&
             std::ranges::equal(of.subspan(pid_end), batch.subspan(pid_end));
    };
    const auto source =
        std::ranges::find_if(sources, [&](const auto& one) { return std::ranges::any_of(one.batches, is_same); });
    if (source == sources.end() || !support::read_batch(batch)) return false;
    const auto found = codec::load<RecordBatchHeader>(batch).producer_id.value();
    auto& known = (*source).*pid;
    if (!known) known = found;
    return *known == found;
  }

  void check() {
    for (const auto& source : sources) {
      const auto expected = static_cast<std::int64_t>(source.expected_pid);
      const auto differs = [&](const char* what, std::int64_t pid, std::int64_t wanted) {
        if (pid != wanted) fail(fmt::format("{}: the producer id {} is {}, not {}", source.name, what, pid, wanted));
      };
      differs("without mirrorpid", *source.pid_without, source_pid);
      differs("through mirrorpid", *source.pid_with, expected);
      differs("at the end of the chain", *source.pid_at_end, expected);
      const auto id = mapping::ClusterId::parse(source.cluster_id);
      if (!id || id->region().value != source.region) fail(source.name + ": the region is wrong");
    }
    if (sources[0].pid_with == sources[1].pid_with) fail("two producers have the same id");
  }

  std::vector<support::MockCluster> make_clusters() {
    std::vector<support::MockCluster> clusters;
    for (std::size_t i = 0; i < sources.size(); ++i) clusters.emplace_back(1);
    return clusters;
  }

  std::vector<support::MockCluster> clusters_ = make_clusters();  // of the sources
  support::MockCluster destination_{3};
  support::MockCluster end_{1};
};

// Text for a terminal or a file.
class Printer {
 public:
  Printer() : has_colour_(isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr) {}

  template <typename... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) const {
    std::printf("%s\n", fmt::format(format, std::forward<Arguments>(arguments)...).c_str());
  }
  std::string bold(std::string_view text) const { return in("1", text); }
  std::string good(std::string_view text) const { return in("32", text); }
  std::string bad(std::string_view text) const { return in("31", text); }

 private:
  std::string in(std::string_view colour, std::string_view text) const {
    return has_colour_ ? fmt::format("\033[{}m{}\033[0m", colour, text) : std::string(text);
  }

  bool has_colour_;
};

void print_story(const Printer& out, const std::vector<SourceStory>& sources) {
  out.line("{}", out.bold("One producer id, two producers"));
  out.line("");
  out.line("  Every Kafka cluster counts its producer ids (PIDs) from 0. So a producer in eu-west and another");
  out.line("  in us-east both own PID {}, and both number their records from sequence 0:", source_pid);
  out.line("");
  for (const auto& source : sources)
    out.line("    {}   cluster {}   PID {}   {} batches", source.name, source.cluster_id, source_pid,
             source.batches.size());
  out.line("");
  out.line("  Both were mirrored verbatim into one partition, once without and once through mirrorpid.");
  out.line("  What the destination holds now:");
  out.line("");
  out.line("  {}", out.bold("SOURCE    PID AT   WITHOUT       THROUGH MIRRORPID                            REGION OF"));
  out.line("  {}",
           out.bold("          SOURCE   MIRRORPID     decimal                hexadecimal           THE SOURCE"));
  for (const auto& source : sources)
    out.line("  {:<9} {:<8} {}   {}   {}    0x{:08x}", source.name, source_pid,
             out.bad(fmt::format("{:<11}", fmt::format("{} (shared)", *source.pid_without))),
             out.good(fmt::format("{:<20}", *source.pid_with)), out.good(hexadecimal(*source.pid_with)), source.region);
  out.line("");
  out.line("  Without it, both are one producer, PID {}, that says everything twice. A broker takes the", source_pid);
  out.line("  second for a resend: acknowledged, never written. Or it refuses it, or fences one in the other's");
  out.line("  name, or ends a stranger's transaction. (The clusters of this demo only store, and judge nothing.)");
  out.line("");
  out.line("  Through mirrorpid, each has an id of its own, made of its cluster's region and its PID. Nothing");
  out.line("  else has changed: records, compression, timestamps, epochs and sequences are the source's.");
  out.line("");
  out.line("{}", out.bold("A chain, A -> B -> C"));
  out.line("");
  out.line("  That destination, B, was mirrored on to a cluster C, through C's own mirrorpid. An id that was");
  out.line("  mapped once stays what it is:");
  out.line("");
  out.line("  {}", out.bold("SOURCE    PID AT A   PID AT B               PID AT C"));
  for (const auto& source : sources)
    out.line("  {:<9} {:<8}   {:<20}   {:<20}   {}", source.name, source_pid, *source.pid_with, *source.pid_at_end,
             out.good("unchanged"));
}

void print_next_steps(const Printer& out) {
  out.line("");
  out.line("{}", out.bold("Next, with clusters of your own"));
  out.line("");
  out.line("  1. Write mirrorpid.yaml, a listener for each source (kafka-cluster.sh cluster-id tells its id):");
  out.line("");
  out.line("       version: 1");
  out.line("       destination: {{bootstrap_servers: [kafka-1.example:9092]}}");
  out.line("       sources:");
  out.line("         - name: eu-west");
  out.line("           cluster_id: MkU3OEVBNTcwNTJENDM2Qg");
  out.line("           listen: 0.0.0.0:19092");
  out.line("           nodes: {{advertise: this-host.example, first_port: 19100}}");
  out.line("");
  out.line("  2. mirrorpid check --config mirrorpid.yaml --connect");
  out.line("  3. mirrorpid serve --config mirrorpid.yaml");
  out.line("  4. Give the mirror tool of eu-west this-host.example:19092 as the destination's bootstrap server.");
}

void print_json(const Demo& demo) {
  json::array sources;
  const auto pid_of = [](std::optional<std::int64_t> pid) {
    return pid ? json::value(std::to_string(*pid)) : json::value(nullptr);
  };
  for (const auto& source : demo.sources) {
    json::array met;
    for (const auto& other : demo.sources)
      if (&other != &source && source.pid_without && other.pid_without == source.pid_without)
        met.push_back(json::value(other.name));
    sources.push_back({{"name", source.name},
                       {"cluster_id", source.cluster_id},
                       {"region", source.region},
                       {"region_hex", fmt::format("0x{:08x}", source.region)},
                       {"batches", source.batches.size()},
                       {"pid", std::to_string(source_pid)},
                       {"pid_without_mirrorpid", pid_of(source.pid_without)},
                       {"met_without_mirrorpid", std::move(met)},
                       {"pid_through_mirrorpid", pid_of(source.pid_with)},
                       {"pid_through_mirrorpid_hex",
                        source.pid_with ? json::value(hexadecimal(*source.pid_with)) : json::value(nullptr)},
                       {"pid_at_end_of_chain", pid_of(source.pid_at_end)}});
  }
  const json::object all{{"ok", demo.problems.empty()},
                         {"sources", std::move(sources)},
                         {"problems", json::array(demo.problems.begin(), demo.problems.end())}};
  std::printf("%s\n", json::serialize(all).c_str());
}

}  // namespace

int run_demo(const DemoOptions& options) {
  log::configure("error", false);
  Demo demo;
  demo.run();
  if (options.as_json) {
    print_json(demo);
  } else if (demo.problems.empty()) {
    const Printer out;
    print_story(out, demo.sources);
    print_next_steps(out);
  }
  for (const auto& problem : demo.problems) std::fprintf(stderr, "mirrorpid: %s\n", problem.c_str());
  return demo.problems.empty() ? exit_done : exit_failed;
}

}  // namespace proxy
