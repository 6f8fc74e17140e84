// The program 'staleness_study': a mixture of experts and a dense network under stale gradients,
// on the virtual clock (scenarios/experts/stale_mixture.hpp).
#include "scenarios/programs/staleness_study.hpp"

#include "scenarios/experts/staleness_report.hpp"
#include "scenarios/programs/program.hpp"
#include "scenarios/schema/checking.hpp"
#include "scenarios/workloads/image_samples.hpp"

#include <fmt/format.h>

namespace shoal::scenarios {
// A program may name its parts as other programs name theirs.
namespace staleness_study_program_parts {
namespace {

class staleness_checker : checking {
public:
  staleness_checker(const scenario& what, const source_map& sources, std::vector<problem>& problems)
      : checking(sources, problems), what_(what), s_(what.program.as<staleness_study>()) {}

  void run() {
    if (sound({"world"}) && what_.world != "sim")
      error("world", fmt::format("a study of staleness runs in virtual time: 'world' cannot be {}",
                                 what_.world));
    if (sound({"staleness_study.models"}) && s_.models.empty())
      error("staleness_study.models", "staleness_study.models: at least one model is needed");
    if (sound({"staleness_study.failures"}) && s_.failures.empty())
      error("staleness_study.failures",
            "staleness_study.failures: at least one probability is needed");
    if (sound({"staleness_study.chosen", "staleness_study.experts"}) && s_.chosen > s_.experts)
      error("staleness_study.chosen",
            fmt::format("{} experts for a sample: a layer has only {}", s_.chosen, s_.experts));
  }

private:
  const scenario& what_;
  const staleness_study& s_;
};

} // namespace
} // namespace staleness_study_program_parts

program_definition staleness_study_program() {
  using namespace staleness_study_program_parts;
  program_definition out;
  out.name = "staleness_study";
  out.meaning = "instead of a training run: trainers with stale gradients, a mixture of experts "
                "beside a dense network, without a network between them. Nothing else but `name`, "
                "`description` and `seed` stands beside it";
  out.options = options_box::of(staleness_study{});
  out.title = "a study of staleness";
  out.sections = {"name", "description", "seed"};
  out.alone = "a study of staleness says everything in its own section";
  out.check = [](const scenario& what, const source_map& sources, const std::string&,
                 std::vector<problem>& problems) {
    staleness_checker(what, sources, problems).run();
  };
  out.outline = [](const scenario& what) {
    const auto& s = what.program.as<staleness_study>();
    return fmt::format("a study of staleness with {} trainers, {} updates", s.trainers, s.updates);
  };
  out.run = [](const scenario& what, const program_hooks& hooks) -> result<program_outcome> {
    const auto& s = what.program.as<staleness_study>();
    const auto samples =
        read_image_samples(s.images, s.labels, {s.size, s.classes, "staleness_study"});
    if (!samples) return failure{samples.error()};
    const auto all = std::span(samples->all);
    const auto training = samples->training * samples->bytes;
    return run_staleness_study(what.name, s, what.seed, all.first(training), all.subspan(training),
                               hooks);
  };
  return out;
}

} // namespace shoal::scenarios
