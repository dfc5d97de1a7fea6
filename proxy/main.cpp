#include <CLI/CLI.hpp>
#include <cstdio>

#include "proxy/commands.hpp"
#include "proxy/demo.hpp"
#include "proxy/state_list.hpp"

// The command line, and nothing else: what a command does is in the file of its name.
int main(int argc, char** argv) {
  using namespace proxy;
  CLI::App app{"A proxy for Apache Kafka's protocol that gives every mirrored producer an id of its own."};
  app.require_subcommand(1);
  app.set_version_flag("--version", "mirrorpid " MIRRORPID_VERSION);
  app.fallthrough(false);
  const std::map<std::string, Format> formats{{"text", Format::text}, {"json", Format::json}};
  Format format = Format::text;
  std::string config_path;
  int result = exit_done;
  const auto add_format = [&](CLI::App* command) {
    command->add_option("--format", format, "text for people, json for programs")
        ->transform(CLI::CheckedTransformer(formats, CLI::ignore_case))
        ->default_str("text");
  };
  const auto add_config = [&](CLI::App* command) {
    command->add_option("-c,--config", config_path, "the configuration, a YAML file")->required();
  };

  auto* serve_command = app.add_subcommand("serve", "run the proxy");
  add_config(serve_command);
  serve_command->callback([&] { result = serve(config_path); });

  auto* check_command = app.add_subcommand("check", "everything that is wrong with a configuration");
  bool connect = false;
  add_config(check_command);
  add_format(check_command);
  check_command->add_flag("--connect", connect, "ask the destination for its nodes too");
  check_command->callback([&] { result = check(config_path, connect, format); });

  // Producer ids are mostly negative, which would be read as options: they are what is left over.
  MapOptions mapping;
  auto* map_command = app.add_subcommand("map", "what producer ids of a source become: map --cluster-id ID PID...");
  map_command->allow_extras();
  add_format(map_command);
  auto* cluster_id = map_command->add_option("--cluster-id", mapping.cluster_id, "the source cluster's id");
  auto* region = map_command->add_option("--region", mapping.region, "the source's region, 0 to 4294967295; wins");
  map_command->callback([&] {
    if (cluster_id->empty() && region->empty()) throw CLI::RequiredError("--cluster-id or --region");
    mapping.pids = map_command->remaining();
    mapping.format = format;
    result = map(mapping);
  });

  auto* decode_command = app.add_subcommand("decode", "what producer ids are: decode PID...");
  decode_command->allow_extras();
  add_format(decode_command);
  decode_command->callback([&] { result = decode(decode_command->remaining(), format); });

  auto* state_command = app.add_subcommand("state", "what the state topic holds");
  state_command->require_subcommand(1);
  StateListOptions listing;
  auto* list_command = state_command->add_subcommand("list", "who has a salt, and whose each region is");
  add_config(list_command);
  add_format(list_command);
  list_command->add_option("--topic", listing.topic_id, "only this topic, by its id of 22 characters");
  list_command->add_option("--source", listing.source, "only this source, by its name or cluster id");
  list_command->callback([&] {
    listing.config_path = config_path;
    listing.format = format;
    result = state_list(listing);
  });

  auto* demo_command = app.add_subcommand("demo", "two sources with the same producer id, and what becomes of them");
  add_format(demo_command);
  demo_command->callback([&] { result = run_demo({format == Format::json}); });

  auto* health_command = app.add_subcommand("health", "asks a broker through each source's listener");
  int timeout_ms = 3000;
  add_config(health_command);
  add_format(health_command);
  health_command->add_option("--timeout-ms", timeout_ms, "for each listener")
      ->check(CLI::Range(1, 60000))
      ->capture_default_str();
  health_command->callback([&] { result = health(config_path, std::chrono::milliseconds(timeout_ms), format); });

  auto* version_command = app.add_subcommand("version", "print the version");
  version_command->callback([] { std::printf("mirrorpid %s\n", MIRRORPID_VERSION); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_done : exit_usage;
  }
  return result;
}
