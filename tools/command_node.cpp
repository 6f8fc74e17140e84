// shoal node: one host of a swarm of real hosts.
#include "scenarios/observe/summary.hpp"
#include "scenarios/runner/bans_file.hpp"
#include "scenarios/runner/runner.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/conduct_argument.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"
#include "tools/live_line.hpp"
#include "tools/place_arguments.hpp"
#include "tools/runner_arguments.hpp"
#include "tools/wire_arguments.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace shoal::tools {

namespace {

struct node_arguments {
  scenario_arguments scenario;
  runner_arguments runner;
  key_arguments keys;
  place_arguments place;
  std::string name, group, uplink, relay;
  conduct_argument conduct;
  bool shape = false, pace = false;
};

/// The command line that every joining host types alike. Names, addresses and keys differ between
/// hosts.
std::string invitation(const node_arguments& from) {
  std::string out = "shoal node " + from.scenario.file;
  for (const auto& set : from.scenario.sets) out += fmt::format(" --set '{}'", set);
  if (from.shape) out += " --shape";
  if (from.pace) out += " --pace";
  return out;
}

int run(node_arguments arguments) {
  arguments.scenario.world = "cluster";
  auto scenario = arguments.scenario.load();
  if (!scenario) return exit_bad_input;
  if (!runs_on_nodes(*scenario, arguments.scenario.file)) return exit_bad_input;
  scenarios::runner_options options;
  scenarios::node_options node;
  node.name = arguments.name.empty() ? host_name() : arguments.name;
  node.group = arguments.group;
  node.shape = arguments.shape;
  node.pace = arguments.pace;
  node.invitation = invitation(arguments);
  auto place = arguments.place.parse();
  if (!place) return exit_usage;
  node.listen = place->listen;
  node.advertise = place->advertise;
  node.join = std::move(place->join);
  std::optional<netem::wire::credentials> credentials;
  if (const int code = arguments.keys.load(credentials); code != exit_ok) return code;
  if (credentials) {
    if (arguments.name.empty()) node.name = credentials->name;
    if (credentials->name != node.name)
      return fail(fmt::format("the keys in '{}' are those of '{}', not of '{}'",
                              arguments.keys.folder, credentials->name, node.name));
    node.credentials = credentials->tls;
    node.admits = credentials->admits;
    node.sign = credentials->sign;
    node.key = credentials->key;
    node.certificate = credentials->certificate;
    node.bans = (std::filesystem::path(arguments.keys.folder) / scenarios::bans_file).string();
  }
  if (arguments.uplink == "unlimited") {
    node.uplink = data_rate{};
  } else if (!arguments.uplink.empty()) {
    auto rate = parse_rate(arguments.uplink);
    if (!rate) return fail(fmt::format("--uplink: {}", rate.error()), exit_usage);
    node.uplink = *rate;
  }
  if (!arguments.relay.empty()) {
    auto size = parse_size(arguments.relay);
    if (!size) return fail(fmt::format("--relay: {}", size.error()), exit_usage);
    if (!node.listen)
      return fail("--relay: a relay has to be a host that others can dial: give --listen",
                  exit_usage);
    node.relay_bytes = size->bytes;
  }
  if (const int code = arguments.conduct.check(); code != exit_ok) return code;
  options.conduct = arguments.conduct.kind;
  std::unique_ptr<scenarios::metrics_server> server;
  if (const int code = arguments.runner.apply(options, server); code != exit_ok) return code;
  live_line line(isatty(STDERR_FILENO) != 0, wants_colour(STDERR_FILENO));
  std::mutex printing;
  node.say = [&, name = node.name](const std::string& text) {
    std::lock_guard guard(printing);
    line.clear();
    fmt::print(stderr, "{}: {}\n", name, text);
  };
  if (!arguments.runner.quiet)
    options.on_status = [&](const scenarios::live_status& status) {
      std::lock_guard guard(printing);
      line.show(status);
    };
  options.interrupted = interrupted;
  options.node = std::move(node);
  const auto shown = options.node->listen
                         ? fmt::format(", listens on {}", options.node->listen->text())
                         : std::string{};
  const auto say = options.node->say;
  std::unique_ptr<run_page> page;
  if (const int code = arguments.runner.attach_page(options, page); code != exit_ok) return code;
  catch_interrupts();
  auto runner = scenarios::runner::prepare(std::move(*scenario), std::move(options));
  if (!runner) return fail(runner.error());
  if (server) say("metrics: " + server->url());
  if (page && !page->url().empty()) say("dashboard: " + page->url());
  say("up" + shown + (arguments.keys.insecure ? ", without encryption or authentication" : ""));
  auto outcome = (*runner)->run();
  {
    std::lock_guard guard(printing);
    line.clear();
  }
  if (!outcome) return fail(outcome.error(), exit_run_failed);
  const auto& summary = outcome->summary;
  if (page) page->finish();
  if (!print_summary(summary, arguments.runner.json,
                     [&] { fmt::print("{}", scenarios::table(summary)); }))
    return exit_run_failed;
  if (outcome->interrupted)
    say("was ended early, has left the round, handed back its samples and said so to the others");
  if (outcome->left_behind)
    fmt::print(stderr,
               "error: everybody has left, and this host is at epoch {}: start it again when "
               "others are there\n",
               summary.epochs);
  return print_violations(summary) || outcome->left_behind ? exit_run_failed
         : outcome->interrupted                            ? exit_interrupted
                                                           : exit_ok;
}

} // namespace

void add_node(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<node_arguments>();
  auto* command = app.add_subcommand("node", "be one host of a swarm of real hosts");
  command
      ->add_option("scenario,--scenario", arguments->scenario.file,
                   "YAML file of the scenario, the same on every host")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("--set", arguments->scenario.sets,
                   "override an option, on every host alike; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--name", arguments->name,
                   "name of this host: one of the scenario (home-3, shard-0), or another one with "
                   "--group (default: its keys' name, or the host's)")
      ->type_name("NAME");
  command
      ->add_option("--group", arguments->group,
                   "the scenario's group with the settings of this host")
      ->type_name("GROUP");
  arguments->place.add_to(*command);
  arguments->keys.add_to(*command);
  command
      ->add_option("--uplink", arguments->uplink,
                   "this host's uplink. Bulk is sent a little slower, so that small messages do "
                   "not wait behind it; "
                   "'unlimited' sends as fast as it goes (default: the scenario's)")
      ->type_name("RATE");
  command
      ->add_option("--relay", arguments->relay,
                   "the amount of data that this host relays between hosts that can only dial")
      ->type_name("SIZE");
  command->add_flag("--shape", arguments->shape,
                    "delay messages as in the scenario's network, before the real one");
  command->add_flag("--pace", arguments->pace, "compute no faster than the scenario's device does");
  arguments->conduct.add_to(*command, "the scenario's");
  arguments->runner.add_to(*command, "end after this time, as in 90s",
                           "compute threads (default: the cores but one)");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

} // namespace shoal::tools
