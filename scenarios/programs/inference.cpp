// The program 'inference': a swarm that serves a language model to clients
// (scenarios/inference/inference_swarm.hpp).
#include "scenarios/programs/inference.hpp"

#include "scenarios/inference/inference_report.hpp"
#include "scenarios/programs/program.hpp"
#include "scenarios/schema/checking.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace shoal::scenarios {
// A program may name its parts as other programs name theirs.
namespace inference_program_parts {
namespace {

class inference_checker : checking {
public:
  inference_checker(const scenario& what, const source_map& sources, std::vector<problem>& problems)
      : checking(sources, problems), what_(what), o_(what.program.as<inference_options>()) {}

  void run() {
    if (sound({"world"}) && what_.world != "sim" && what_.world != "loopback")
      error("world",
            fmt::format(
                "an inference swarm runs in the worlds sim and loopback: 'world' cannot be {}",
                what_.world),
            {"'shoal serve-model' and 'shoal chat' make a swarm of processes"});
    if (sound({"world"}) && what_.world == "loopback" &&
        (o_.model == "timing" || o_.task == "forward"))
      error("world", "a run that predicts times needs virtual time: take the world sim");
    if (sound({"inference.servers"}) && o_.servers.empty())
      error("inference.servers", "inference.servers: at least one server is needed");
    for (std::size_t i = 0; i < o_.servers.size(); ++i) {
      const auto path = fmt::format("inference.servers.{}", i);
      if (!sound({path})) continue;
      if (o_.placement == "auto" && !some_layers_of(o_.servers[i]))
        error(path,
              fmt::format("'{}' is no number of layers: write '2' for any two", o_.servers[i]));
      if (o_.placement != "auto" && !layers_of(o_.servers[i]))
        error(path,
              fmt::format("'{}' names no layers: write '0:2' for the first two", o_.servers[i]));
    }
    if (sound({"inference.model"}) && o_.model != "random" && o_.model != "timing" &&
        !std::filesystem::exists(o_.model))
      error("inference.model", fmt::format("there is no model '{}'", o_.model),
            {"'random' needs no file"});
    for (std::size_t i = 0; !o_.servers.empty() && i < o_.wrong_servers.size(); ++i) {
      const auto path = fmt::format("inference.wrong_servers.{}", i);
      const auto number = number_of_server(o_.wrong_servers[i]);
      if (sound({path}) && (!number || *number >= o_.servers.size()))
        error(path, fmt::format("there is no server '{}': inference.servers has 'server-0' to "
                                "'server-{}'",
                                o_.wrong_servers[i], o_.servers.size() - 1));
    }
    if (sound({"inference.check"}) && o_.check > 0 && (o_.model == "timing" || o_.task != "write"))
      error("inference.check",
            "only a text of a model with weights is checked: leave `check` out, or take the task "
            "write and another model");
    if (sound({"inference.prompt"}) && o_.prompt.empty())
      error("inference.prompt", "the prompt is empty: give at least one word");
  }

private:
  const scenario& what_;
  const inference_options& o_;
};

} // namespace
} // namespace inference_program_parts

program_definition inference_program() {
  using namespace inference_program_parts;
  program_definition out;
  out.name = "inference";
  out.meaning = "instead of a training run: servers that hold layers of a language model, and "
                "clients that write with it. Nothing else but `name`, `description`, `seed` and "
                "`world` stands beside it";
  out.options = options_box::of(inference_options{});
  out.title = "an inference swarm";
  out.sections = {"name", "description", "seed", "world"};
  out.alone = "an inference swarm says everything in its own section";
  out.check = [](const scenario& what, const source_map& sources, const std::string&,
                 std::vector<problem>& problems) {
    inference_checker(what, sources, problems).run();
  };
  out.outline = [](const scenario& what) {
    const auto& o = what.program.as<inference_options>();
    return fmt::format("an inference swarm of {} server{} and {} client{}", o.servers.size(),
                       o.servers.size() == 1 ? "" : "s", o.clients, o.clients == 1 ? "" : "s");
  };
  out.run = [](const scenario& what, const program_hooks& hooks) {
    auto options = what.program.as<inference_options>();
    options.loopback = what.world == "loopback";
    return run_inference(what.name, options, what.seed, hooks);
  };
  return out;
}

} // namespace shoal::scenarios
