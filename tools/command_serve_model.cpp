// shoal serve-model MODEL: holds layers of a model for a swarm of real hosts.
#include "scenarios/inference/inference_process.hpp"
#include "scenarios/inference/inference_report.hpp"
#include "scenarios/inference/model_pieces.hpp"
#include "scenarios/record/version.hpp"
#include "scenarios/runner/bans_file.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/conduct_argument.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"
#include "tools/model_argument.hpp"
#include "tools/place_arguments.hpp"
#include "tools/wire_arguments.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <thread>

namespace shoal::tools {

namespace {

struct serve_model_arguments {
  model_argument model;
  place_arguments place;
  key_arguments keys;
  conduct_argument conduct;
  std::string blocks = "auto", name, drain = "30s";
  std::uint64_t cache = 1 << 20;
  unsigned workers = 1;
};

/// The layers whose weights take half of the memory that is free now; at least one.
std::uint32_t layers_that_fit(const learn::served_model& model, learn::weight_format format) {
  const auto layers = model.model->layers();
  const auto tensors = model.model->block_tensors({0, 1}).value();
  const auto each = kernels::end_of(tensors) * (format == learn::weight_format::float32    ? 4
                                                : format == learn::weight_format::bfloat16 ? 2
                                                                                           : 1);
  const auto free = static_cast<std::uint64_t>(std::max(0L, sysconf(_SC_AVPHYS_PAGES))) *
                    static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(free / 2 / each, 1, static_cast<std::uint64_t>(layers)));
}

int serve_model(const serve_model_arguments& arguments) {
  using namespace std::chrono_literals;
  const auto layers = scenarios::layers_of(arguments.blocks);
  const auto some = scenarios::some_layers_of(arguments.blocks);
  if (!some && arguments.blocks != "auto")
    return fail(
        fmt::format("--blocks: '{}' names no layers: write 0:2 for the first two, 2 for any "
                    "two, or auto",
                    arguments.blocks),
        exit_usage);
  const auto patience = parse_duration(arguments.drain);
  if (!patience) return fail(fmt::format("--drain: {}", patience.error()), exit_usage);
  if (const int code = arguments.conduct.check(); code != exit_ok) return code;
  auto place = arguments.place.parse();
  if (!place) return exit_usage;
  scenarios::inference_place here;
  here.listen = place->listen;
  here.advertise = place->advertise;
  here.join = std::move(place->join);
  here.version = scenarios::version();
  if (const int code = arguments.keys.load(here.keys); code != exit_ok) return code;
  here.name = !arguments.name.empty() ? arguments.name
              : here.keys             ? here.keys->name
                                      : process_name("server");
  if (here.keys && here.keys->name != here.name)
    return fail(fmt::format("the keys in '{}' are those of '{}', not of '{}'",
                            arguments.keys.folder, here.keys->name, here.name));
  if (here.keys) {
    auto bans =
        scenarios::load_bans(std::filesystem::path(arguments.keys.folder) / scenarios::bans_file);
    if (!bans) return fail(bans.error(), exit_bad_input);
    for (const auto& each : bans->skipped) fmt::print(stderr, "{}: {}\n", here.name, each);
    here.bans = std::move(bans->all);
  }
  scenarios::inference_process_options options;
  options.model = arguments.model.load();
  if (!options.model) return exit_bad_input;
  const auto model = options.model;
  options.weights = arguments.model.format();
  if (layers)
    options.servers = {*layers};
  else
    options.chosen_layers = some ? some->count() : layers_that_fit(*model, options.weights);
  const auto held = layers ? "serves layers " + scenarios::to_text(*layers)
                           : fmt::format("chooses {} layers", *options.chosen_layers);
  options.limits.cache = arguments.cache;
  options.limits.cache_of_one = std::max<std::uint64_t>(arguments.cache / 2, 1);
  options.compute_threads = arguments.workers;
  if (!arguments.conduct.kind.empty()) options.conducts = {{0, arguments.conduct.kind}};
  const auto say = [name = here.name](const std::string& text) {
    fmt::print(stderr, "{}: {}\n", name, text);
  };
  options.say = say;
  options.place = std::move(here);
  catch_interrupts();
  auto process = scenarios::inference_process::start(std::move(options));
  if (!process) return fail(process.error());
  auto& server = **process;
  const auto at = server.listens_at();
  say(fmt::format("{} of {}{}{}", held, model->name, at.empty() ? "" : ", listens on " + at,
                  arguments.keys.insecure ? ", without encryption or authentication" : ""));
  while (!interrupted() && !server.told_to_leave() && !server.broken())
    std::this_thread::sleep_for(50ms);
  if (const auto why = server.broken()) return fail(*why, exit_run_failed);
  server.drain();
  std::this_thread::sleep_for(100ms); // a server without sessions is drained at once
  const auto until = std::chrono::steady_clock::now() + *patience;
  if (!server.drained()) say("takes no new text, and finishes those that it has");
  while (!server.drained() && !interrupted_again() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(50ms);
  process->reset();
  say("has left");
  return exit_ok;
}

} // namespace

void add_serve_model(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<serve_model_arguments>();
  auto* command =
      app.add_subcommand("serve-model", "hold layers of a language model for a swarm of hosts");
  arguments->model.add_to(*command);
  command
      ->add_option("--blocks", arguments->blocks,
                   "the layers that this server holds, as 0:3 for the first three. With a number, "
                   "as 3, it takes so many of the layers that are held weakest, and moves when "
                   "others become weaker. auto: as many as fit into half of the free memory")
      ->capture_default_str()
      ->type_name("FIRST:LAST|N|auto");
  arguments->place.add_to(*command);
  arguments->keys.add_to(*command);
  command
      ->add_option("--name", arguments->name,
                   "name of this server (default: its keys' name, or one from the host's)")
      ->type_name("NAME");
  command
      ->add_option("--cache", arguments->cache,
                   "tokens times layers that the server keeps for sessions")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(1ul, 1ul << 40));
  command->add_option("--workers", arguments->workers, "compute threads")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1024u));
  command
      ->add_option("--drain", arguments->drain,
                   "after Ctrl-C or SIGTERM, time for the texts under way")
      ->type_name("TIME")
      ->capture_default_str();
  arguments->conduct.add_to(*command, "honest");
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return serve_model(*arguments); }; });
}

} // namespace shoal::tools
