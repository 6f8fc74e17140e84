// The program 'pipeline': a swarm whose hosts hold the stages of one model, and trainers that learn
// through them (scenarios/pipeline/pipeline_swarm.hpp).
#include "scenarios/programs/pipeline.hpp"

#include "scenarios/pipeline/pipeline_report.hpp"
#include "scenarios/programs/program.hpp"
#include "scenarios/schema/check_scenario.hpp"
#include "scenarios/schema/checking.hpp"
#include "scenarios/schema/hosts.hpp"

#include <fmt/format.h>

namespace shoal::scenarios {
// A program may name its parts as other programs name theirs.
namespace pipeline_program_parts {
namespace {

class pipeline_checker : checking {
public:
  pipeline_checker(const scenario& what, const source_map& sources, std::vector<problem>& problems)
      : checking(sources, problems), what_(what), o_(what.program.as<pipeline_options>()) {}

  void run() {
    if (sound({"world"}) && what_.world != "sim")
      error("world",
            fmt::format("this program runs in virtual time: 'world' cannot be {}", what_.world));
    if (sound({"pipeline.files", "pipeline.timing"}) && o_.files.empty() && !o_.timing)
      error("pipeline.files", "pipeline.files: a pipeline needs text to learn",
            {"'timing: true' predicts times without text"});
    for (std::size_t i = 0; i < o_.files.size(); ++i) {
      const auto path = fmt::format("pipeline.files.{}", i);
      if (sound({path}) && files_matching(o_.files[i]).empty())
        error(path, fmt::format("no such file: '{}'", o_.files[i]));
    }
    if (sound({"pipeline.dim", "pipeline.heads"}) && !o_.timing && o_.dim % (2 * o_.heads) != 0)
      error(given("pipeline.heads") ? "pipeline.heads" : "pipeline.dim",
            fmt::format("dim {} is no multiple of 2 * {} heads", o_.dim, o_.heads));
    if (sound({"pipeline.stages", "pipeline.layers"}) && !o_.timing && o_.stages > o_.layers)
      error("pipeline.stages",
            fmt::format("{} stages: the model has only {} layers", o_.stages, o_.layers));
    if (sound({"pipeline.hosts", "pipeline.stages"}) && o_.hosts < o_.stages)
      error("pipeline.hosts",
            fmt::format("{} hosts: each of {} stages needs one", o_.hosts, o_.stages));
    if (sound({"pipeline.trainers", "pipeline.batch"}) && o_.trainers > o_.batch)
      error("pipeline.trainers",
            fmt::format("{} trainers: a batch of {} samples has a part for {} at most", o_.trainers,
                        o_.batch, o_.batch));
  }

private:
  const scenario& what_;
  const pipeline_options& o_;
};

} // namespace
} // namespace pipeline_program_parts

program_definition pipeline_program() {
  using namespace pipeline_program_parts;
  program_definition out;
  out.name = "pipeline";
  out.meaning = "instead of a training run: hosts that hold the stages of one model, and trainers "
                "that send micro-batches through them. Nothing else but `name`, `description` and "
                "`seed` stands beside it";
  out.options = options_box::of(pipeline_options{});
  out.title = "a pipeline";
  out.sections = {"name", "description", "seed"};
  out.alone = "a pipeline says everything in its own section";
  out.check = [](const scenario& what, const source_map& sources, const std::string&,
                 std::vector<problem>& problems) {
    pipeline_checker(what, sources, problems).run();
  };
  out.outline = [](const scenario& what) {
    const auto& o = what.program.as<pipeline_options>();
    return fmt::format("a pipeline of {} stage{} on {} host{}, {} trainer{}", o.stages,
                       o.stages == 1 ? "" : "s", o.hosts, o.hosts == 1 ? "" : "s", o.trainers,
                       o.trainers == 1 ? "" : "s");
  };
  out.run = [](const scenario& what, const program_hooks& hooks) {
    return run_pipeline(what.name, what.program.as<pipeline_options>(), what.seed, hooks);
  };
  return out;
}

} // namespace shoal::scenarios
