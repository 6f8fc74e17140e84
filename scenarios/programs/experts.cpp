// The program 'experts': a swarm whose hosts hold the experts of a network, and trainers that learn
// with them (scenarios/experts/expert_swarm.hpp).
#include "scenarios/programs/experts.hpp"

#include "scenarios/experts/expert_report.hpp"
#include "scenarios/programs/program.hpp"
#include "scenarios/schema/checking.hpp"

#include <fmt/format.h>

namespace shoal::scenarios {
// A program may name its parts as other programs name theirs.
namespace experts_program_parts {
namespace {

constexpr std::uint64_t most_experts = 1 << 20;

class experts_checker : checking {
public:
  experts_checker(const scenario& what, const source_map& sources, std::vector<problem>& problems)
      : checking(sources, problems), what_(what), o_(what.program.as<experts_options>()) {}

  void run() {
    if (sound({"world"}) && what_.world != "sim")
      error("world",
            fmt::format("this program runs in virtual time: 'world' cannot be {}", what_.world));
    if (sound({"experts.images", "experts.labels"}) && o_.images.empty() != o_.labels.empty())
      error(o_.images.empty() ? "experts.labels" : "experts.images",
            "experts.images and experts.labels belong together: give both, or none");
    if (sound({"experts.images", "experts.text"}) && !o_.images.empty() && !o_.text.empty())
      error("experts.text", "a network learns images or a text: give experts.images or "
                            "experts.text");
    if (!o_.text.empty() && sound({"experts.width", "experts.heads"}) &&
        o_.width % (2 * o_.heads) != 0)
      error("experts.width", fmt::format("a width of {} has no {} heads of an even size: take a "
                                         "multiple of {}",
                                         o_.width, o_.heads, 2 * o_.heads));
    if (sound({"experts.grid", "experts.layers"}) && o_.grid.cells() > most_experts / o_.layers)
      error("experts.grid", fmt::format("{} layers of {} experts: at most {} in all are possible",
                                        o_.layers, o_.grid.cells(), most_experts));
    if (sound({"experts.gate", "experts.chosen"}))
      if (const auto wrong = misfit_of(o_.gate, o_.chosen)) error("experts.gate", *wrong);
    if (sound({"experts.grid", "experts.chosen"}) && o_.chosen > o_.grid.cells())
      error("experts.chosen", fmt::format("{} experts for a sample: a layer has only {}", o_.chosen,
                                          o_.grid.cells()));
  }

private:
  const scenario& what_;
  const experts_options& o_;
};

} // namespace
} // namespace experts_program_parts

program_definition experts_program() {
  using namespace experts_program_parts;
  program_definition out;
  out.name = "experts";
  out.meaning = "instead of a training run: hosts that hold the experts of a network, and trainers "
                "that learn with them and wait for nobody. Nothing else but `name`, `description` "
                "and `seed` stands beside it";
  out.options = options_box::of(experts_options{});
  out.title = "a swarm of experts";
  out.sections = {"name", "description", "seed"};
  out.alone = "a swarm of experts says everything in its own section";
  out.check = [](const scenario& what, const source_map& sources, const std::string&,
                 std::vector<problem>& problems) {
    experts_checker(what, sources, problems).run();
  };
  out.outline = [](const scenario& what) {
    const auto& o = what.program.as<experts_options>();
    return fmt::format("{} experts on {} hosts, {} trainer{}", o.layers * o.grid.cells(), o.hosts,
                       o.trainers, o.trainers == 1 ? "" : "s");
  };
  out.run = [](const scenario& what, const program_hooks& hooks) -> result<program_outcome> {
    return run_experts(what.name, what.program.as<experts_options>(), what.seed, hooks);
  };
  return out;
}

} // namespace shoal::scenarios
