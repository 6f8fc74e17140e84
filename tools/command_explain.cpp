// shoal explain RUN: the reasons why a transfer, a round, a micro-batch or a call of an expert took
// as long as it did. With --case, the story of a member.
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/record/explain.hpp"
#include "scenarios/record/explain_case.hpp"
#include "scenarios/record/explain_experts.hpp"
#include "scenarios/record/explain_micro_batch.hpp"
#include "scenarios/record/notable_rounds.hpp"
#include "scenarios/record/study_directory.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/round_picture.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <optional>

namespace shoal::tools {

namespace {

struct explain_arguments {
  std::string run, svg;
  std::optional<std::uint64_t> flow, round, number_of_case;
  bool experts = false, micro_batches = false, json = false;
};

template <class What>
int show(const result<What>& what, bool json) {
  if (!what) return fail(what.error());
  std::fputs((json ? scenarios::to_json(*what) : scenarios::to_text(*what)).c_str(), stdout);
  return exit_ok;
}

int explain(const explain_arguments& arguments) {
  if (arguments.number_of_case)
    return show(scenarios::explain_case(arguments.run, *arguments.number_of_case), arguments.json);
  if (arguments.micro_batches)
    return show(scenarios::explain_micro_batches(arguments.run), arguments.json);
  if (auto run = scenarios::require_history(arguments.run, "transfer and no round to explain");
      !run)
    return fail(run.error());
  if (arguments.flow)
    return show(scenarios::explain_transfer(arguments.run, *arguments.flow), arguments.json);
  if (arguments.experts) return show(scenarios::explain_experts(arguments.run), arguments.json);
  if (!arguments.round) {
    const auto found = scenarios::notable_rounds(arguments.run);
    if (!found) {
      // A mixture of experts has no rounds.
      const auto steps = scenarios::explain_experts(arguments.run);
      return steps ? show(steps, arguments.json) : fail(found.error());
    }
    const auto text =
        arguments.json ? scenarios::to_json(*found) : scenarios::to_text(*found, arguments.run);
    std::fputs(text.c_str(), stdout);
    return exit_ok;
  }
  const auto rounds = scenarios::explain_round(arguments.run, *arguments.round);
  if (rounds && !arguments.svg.empty()) {
    if (auto written = scenarios::write_file(arguments.svg, round_picture(*rounds)); !written)
      return fail(written.error(), exit_run_failed);
  }
  return show(rounds, arguments.json);
}

} // namespace

void add_explain(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<explain_arguments>();
  auto* command = app.add_subcommand(
      "explain",
      "tell why a transfer, a round or a micro-batch took as long as it did, or what a member did");
  command->add_option("RUN", arguments->run, "a run directory")->required()->type_name("DIR");
  auto* which = command->add_option_group("what");
  auto* flow = which->add_option("--flow", arguments->flow, "a transfer's number")->type_name("N");
  auto* round =
      which->add_option("--round", arguments->round,
                        "the rounds of epoch N; without it the rounds worth a look are listed");
  round->type_name("N");
  auto* one_case = which->add_option("--case", arguments->number_of_case,
                                     "case N: the deed of a member, the proof, and the bans");
  one_case->type_name("N");
  auto* slowest = which->add_flag("--micro-batches", arguments->micro_batches,
                                  "the five slowest micro-batches of a pipeline, hop by hop");
  which->add_flag("--experts", arguments->experts,
                  "the steps of a mixture with the slowest calls of experts");
  which->require_option(0, 1);
  command->add_option("--svg", arguments->svg, "with --round: draw its transfers into this file")
      ->type_name("FILE")
      ->needs(round)
      ->excludes(flow)
      ->excludes(one_case)
      ->excludes(slowest);
  command->add_flag("--json", arguments->json, "print JSON on stdout");
  command->callback([arguments, &chosen] { chosen = [arguments] { return explain(*arguments); }; });
}

} // namespace shoal::tools
