// shoal probe: measures a host for the inventory that a scenario is promoted to.
#include "kernels/base/units.hpp"
#include "netem/wire/address.hpp"
#include "netem/wire/line_probe.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/promote/measure.hpp"
#include "scenarios/schema/hosts.hpp"
#include "scenarios/schema/inventory.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"
#include "tools/node_boot.hpp"
#include "tools/wire_arguments.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace shoal::tools {

namespace {

struct probe_arguments {
  scenario_arguments scenario;
  key_arguments keys;
  std::string name, address, group, listen, out, up, down, time = "5s";
  std::vector<std::string> to;
  bool shard = false;
};

/// Measures the start of a node in the role of the scenario's first host.
result<duration> boot_time_of(const scenario_arguments& from, const scenarios::scenario& what) {
  std::vector<std::string> arguments{from.file,
                                     "--insecure",
                                     "-q",
                                     "--listen",
                                     "127.0.0.1:0",
                                     "--name",
                                     scenarios::expand_hosts(what).front().name};
  for (const auto& set : from.sets) arguments.insert(arguments.end(), {"--set", set});
  const auto took = measure_boot(arguments);
  if (!took) return took;
  return duration{std::chrono::round<std::chrono::milliseconds>(*took)};
}

/// Rounds to the digits that a measurement on a shared line can support.
data_rate rounded(double bits_per_second) {
  return {std::stod(fmt::format("{:.4g}", bits_per_second))};
}

int answer(const probe_arguments& arguments) {
  const auto at = netem::wire::parse_address(arguments.listen);
  if (!at) return fail("--listen: " + at.error(), exit_usage);
  std::optional<netem::wire::credentials> keys;
  if (const int code = arguments.keys.load(keys); code != exit_ok) return code;
  auto listening = netem::wire::line_answerer::open(*at, keys ? keys->tls : nullptr,
                                                    keys ? keys->admits : nullptr);
  if (!listening) return fail(listening.error(), exit_bad_input);
  fmt::print(stderr, "answers measurements on {} until it is ended\n", (*listening)->at().text());
  catch_interrupts();
  while (!interrupted()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return exit_ok;
}

int measure(const probe_arguments& arguments) {
  const auto time = parse_duration(arguments.time);
  if (!time || *time < std::chrono::milliseconds(500))
    return fail("--time: " + (time ? "at least 500ms" : time.error()), exit_usage);
  const auto scenario = arguments.scenario.load();
  if (!scenario) return exit_bad_input;
  if (!runs_on_nodes(*scenario, arguments.scenario.file)) return exit_bad_input;
  std::optional<netem::wire::credentials> keys;
  if (!arguments.to.empty())
    if (const int code = arguments.keys.load(keys); code != exit_ok) return code;
  const auto name = !arguments.name.empty() ? arguments.name : keys ? keys->name : host_name();
  if (!scenarios::is_plain_name(name))
    return fail(fmt::format("--name: '{}' cannot name a host: use a-z, 0-9, '_' and '-'", name),
                exit_usage);

  // Earlier entries stay, except for the measured values.
  scenarios::inventory all;
  std::error_code error;
  if (!arguments.out.empty() && std::filesystem::exists(arguments.out, error)) {
    auto loaded = scenarios::load_inventory(arguments.out);
    print_diagnostics(loaded.errors);
    if (!loaded.value) return exit_bad_input;
    all = std::move(*loaded.value);
  }
  auto& host = all.hosts[name];
  if (!arguments.address.empty()) {
    const auto at = netem::wire::parse_address(arguments.address);
    if (!at) return fail("--address: " + at.error(), exit_usage);
    host.address = at->text();
  }
  if (!arguments.group.empty()) host.group = arguments.group;
  host.shard = host.shard || arguments.shard;
  if (!host.shard) {
    fmt::print(stderr, "{}: computes for {}\n", name, to_string(*time));
    if (auto done = scenarios::measure_compute(*scenario, *time, host); !done)
      return fail(done.error(), exit_bad_input);
    fmt::print(stderr, "{}: starts a node a few times\n", name);
    const auto boot = boot_time_of(arguments.scenario, *scenario);
    if (!boot) return fail(boot.error(), exit_run_failed);
    host.boot_time = *boot;
  }
  fmt::print(stderr, "{}: copies bytes to itself for {}\n", name, to_string(*time));
  const auto copying = netem::wire::measure_copying(keys ? keys->tls : nullptr,
                                                    keys ? keys->admits : nullptr, *time);
  if (!copying) return fail(copying.error(), exit_run_failed);
  host.serialize = rounded(*copying);
  for (const auto& text : arguments.to) {
    const auto equals = text.find('=');
    const auto at =
        netem::wire::parse_address(equals == std::string::npos ? text : text.substr(equals + 1));
    if (!at) return fail("--to: " + at.error(), exit_usage);
    fmt::print(stderr, "{}: measures the line to {} for {}\n", name, at->text(),
               to_string(2 * *time));
    const auto line = netem::wire::measure_line(*at, keys ? keys->tls : nullptr,
                                                keys ? keys->admits : nullptr, *time);
    if (!line) return fail(line.error(), exit_run_failed);
    const auto other = equals == std::string::npos ? line->name : text.substr(0, equals);
    if (other.empty())
      return fail(
          fmt::format(
              "--to: without keys the name of the host at {} is unknown: write --to NAME={}",
              at->text(), at->text()),
          exit_usage);
    host.delays[other] = std::chrono::duration_cast<std::chrono::microseconds>(line->round_trip);
    // A line is as fast as the fastest path over it.
    host.up = std::max(host.up, rounded(line->up), [](data_rate a, data_rate b) {
      return a.bits_per_second < b.bits_per_second;
    });
    host.down = std::max(host.down, rounded(line->down), [](data_rate a, data_rate b) {
      return a.bits_per_second < b.bits_per_second;
    });
  }
  for (const auto& [option, text, rate] : {std::tuple{"--up", &arguments.up, &host.up},
                                           std::tuple{"--down", &arguments.down, &host.down}}) {
    if (!text->empty()) {
      const auto given = parse_rate(*text);
      if (!given) return fail(fmt::format("{}: {}", option, given.error()), exit_usage);
      *rate = *given;
    }
    if (rate->bits_per_second <= 0)
      return fail(fmt::format("the line's rates are unknown: measure them with --to another host, "
                              "where 'shoal probe --listen' answers, or give them with {} RATE",
                              option),
                  exit_usage);
  }
  const scenarios::inventory only{{{name, host}}};
  if (arguments.out.empty()) {
    fmt::print("{}", to_yaml(only));
    return exit_ok;
  }
  auto file = scenarios::output_file::create(arguments.out);
  if (!file) return fail(file.error(), exit_run_failed);
  (*file)->write(to_yaml(all));
  if (auto done = (*file)->commit(); !done) return fail(done.error(), exit_run_failed);
  fmt::print("{}", to_yaml(only));
  fmt::print(stderr, "{}: {} host{}\n", arguments.out, all.hosts.size(),
             all.hosts.size() == 1 ? "" : "s");
  return exit_ok;
}

int run(const probe_arguments& arguments) {
  if (arguments.listen.empty() == arguments.scenario.file.empty())
    return fail("give a scenario, whose model is measured here, or --listen HOST:PORT, where "
                "others measure their lines to this host",
                exit_usage);
  return arguments.listen.empty() ? measure(arguments) : answer(arguments);
}

} // namespace

void add_probe(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<probe_arguments>();
  auto* command = app.add_subcommand(
      "probe", "measure this host for the inventory that a scenario is promoted to");
  command
      ->add_option("scenario", arguments->scenario.file,
                   "YAML file of the scenario whose model is computed")
      ->type_name("FILE");
  command->add_option("--set", arguments->scenario.sets, "override an option; repeatable")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--name", arguments->name,
                   "this host's name (default: its keys', or the machine's)")
      ->type_name("NAME");
  command
      ->add_option("--address", arguments->address,
                   "the address that others will dial; without it they cannot dial this host")
      ->type_name("HOST:PORT");
  command
      ->add_option("--group", arguments->group,
                   "the scenario's group with the settings of this host")
      ->type_name("GROUP");
  command->add_flag("--shard", arguments->shard,
                    "this host has the text and will run the data shard; no computing is measured");
  command
      ->add_option(
          "--to", arguments->to,
          "measure the line to this host, where 'shoal probe --listen' answers; repeatable")
      ->type_name("[NAME=]HOST:PORT")
      ->allow_extra_args(false);
  command
      ->add_option("--listen", arguments->listen,
                   "answer hosts that measure their lines to this one, until ended")
      ->type_name("HOST:PORT");
  arguments->keys.add_to(*command);
  command->add_option("--up", arguments->up, "the uplink, if it is known better than by measuring")
      ->type_name("RATE");
  command->add_option("--down", arguments->down, "the same for the downlink")->type_name("RATE");
  command->add_option("--time", arguments->time, "duration of each measurement (5s)")
      ->type_name("TIME");
  command
      ->add_option("-o,--out", arguments->out,
                   "write the host into this inventory, and keep the operator's lines; a missing "
                   "inventory is created")
      ->type_name("FILE");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

} // namespace shoal::tools
