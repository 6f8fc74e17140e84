// shoal memory: the memory that training a transformer takes, with the formula of each figure.
#include "kernels/base/json_text.hpp"
#include "kernels/memory_estimate.hpp"
#include "scenarios/methods/experts.hpp"
#include "scenarios/methods/pipeline.hpp"
#include "scenarios/plan/host_memory.hpp"
#include "scenarios/programs/program.hpp"
#include "scenarios/schema/load.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <tuple>

namespace shoal::tools {

namespace {

using json = nlohmann::ordered_json;
using kernels::dalle_memory;
using kernels::memory_choices;
using kernels::memory_models;
using kernels::memory_optimizers;
using kernels::memory_precisions;
using kernels::memory_unit;
using kernels::seeds_memory;
using kernels::shoal_memory;

constexpr double bytes_in_gib = 1024.0 * 1024.0 * 1024.0;
/// The values of GPT-2, for shapes that do not give their own.
constexpr std::int64_t usual_context = 1024, usual_vocabulary = 50257, usual_head = 64,
                       usual_inner = 4;

struct memory_arguments {
  std::string file, model;
  std::vector<std::string> sets;
  std::optional<std::int64_t> layers, heads, dim, hidden, context, vocabulary, sharing, batch, gpus,
      zero;
  std::optional<std::string> optimizer, precision;
  bool offload = false, checkpointing = false, swarm = false, list = false, json = false;
};

template <class T>
std::vector<std::string> names_in(const std::vector<T>& of) {
  std::vector<std::string> out;
  out.reserve(of.size());
  for (const auto& one : of) out.push_back(one.name);
  return out;
}

bool is_among(const std::vector<std::string>& in, const std::string& word) {
  return std::find(in.begin(), in.end(), word) != in.end();
}

/// The file's scenario, or nothing. Prints mistakes.
std::optional<scenarios::scenario> scenario_of(const memory_arguments& a) {
  auto loaded = scenarios::load(a.file, a.sets);
  print_diagnostics(loaded.errors);
  print_diagnostics(loaded.warnings);
  return std::move(loaded.value);
}

/// Takes the model, optimizer and batch of the scenario's peers. Prints the error, if there is one.
bool take_scenario(const memory_arguments& a, const scenarios::scenario& what,
                   memory_choices& out) {
  auto made = scenarios::memory_choices_of(what);
  if (!made) return fail(a.file + ": " + made.error()), false;
  if (!*made)
    return fail(a.file + " trains no transformer; the estimate knows only the workloads "
                         "'transformer' and 'dalle'"),
           false;
  out = std::move(**made);
  return true;
}

/// Shoal's own figures for the model.
const std::vector<kernels::memory_definition>& own_figures(const memory_choices& choices) {
  return choices.shape.codes > 0 ? dalle_memory() : shoal_memory();
}

/// Prints the error, if there is one.
bool take_model(const memory_arguments& a, memory_choices& out) {
  const auto& models = memory_models();
  const auto found = std::find_if(models.begin(), models.end(),
                                  [&](const auto& one) { return one.name == a.model; });
  if (found == models.end())
    return unknown_word("--model", "model", a.model, names_in(models)), false;
  out.shape = *found;
  return true;
}

bool is_named(const memory_arguments& a) {
  return !a.file.empty() || !a.model.empty();
}

/// `what`: the file's scenario, or null. Requires: a name, or layers and dim. Prints the error, if
/// there is one.
std::optional<memory_choices> choices_of(const memory_arguments& a,
                                         const scenarios::scenario* what) {
  memory_choices out;
  const bool named = is_named(a);
  if (what != nullptr && !take_scenario(a, *what, out)) return std::nullopt;
  if (!a.model.empty() && !take_model(a, out)) return std::nullopt;
  auto& shape = out.shape;
  if (!named)
    shape = {"own shape",
             *a.layers,
             std::max<std::int64_t>(1, *a.dim / usual_head),
             *a.dim,
             usual_inner * *a.dim,
             usual_context,
             usual_vocabulary};
  if (a.dim && named && !a.hidden) shape.hidden = usual_inner * *a.dim;
  const auto take = [](const auto& given, auto& into) {
    if (given) into = *given;
  };
  take(a.layers, shape.layers);
  take(a.heads, shape.heads);
  take(a.dim, shape.dim);
  take(a.hidden, shape.hidden);
  take(a.context, shape.context);
  take(a.vocabulary, shape.vocabulary);
  take(a.sharing, out.sharing);
  take(a.batch, out.batch);
  take(a.gpus, out.gpus);
  take(a.zero, out.zero);
  for (const auto& [option, given, into, known] :
       {std::tuple{"--optimizer", &a.optimizer, &out.optimizer, names_in(memory_optimizers())},
        std::tuple{"--precision", &a.precision, &out.precision, names_in(memory_precisions())}}) {
    if (*given && !is_among(known, **given))
      return unknown_word(option, option + 2, **given, known), std::nullopt;
    take(*given, *into);
  }
  out.offload |= a.offload;
  out.checkpointing |= a.checkpointing;
  out.swarm |= a.swarm;
  if (const auto valid = kernels::validate(out); !valid) return fail(valid.error()), std::nullopt;
  return out;
}

json shape_json(const kernels::memory_shape& shape) {
  json out{{"name", shape.name},
           {"layers", shape.layers},
           {"heads", shape.heads},
           {"dim", shape.dim},
           {"hidden", shape.hidden},
           {"context", shape.context},
           {"vocabulary", shape.vocabulary}};
  if (shape.codes > 0) {
    out["caption"] = shape.caption;
    out["codes"] = shape.codes;
  }
  return out;
}

json definition_json(const kernels::memory_definition& of) {
  return {
      {"name", of.name}, {"unit", to_string(of.unit)}, {"formula", of.formula}, {"what", of.what}};
}

/// All inputs of an estimate, so that the page can compute the same.
json memory_model_json() {
  json out{{"models", json::array()},
           {"optimizers", json::array()},
           {"precisions", json::array()},
           {"seeds", json::array()},
           {"shoal", json::array()}};
  for (const auto& one : memory_models()) out["models"].push_back(shape_json(one));
  for (const auto& one : memory_optimizers())
    out["optimizers"].push_back({{"name", one.name},
                                 {"optimizer_bytes", one.optimizer_bytes},
                                 {"blockwise", one.blockwise}});
  for (const auto& one : memory_precisions())
    out["precisions"].push_back({{"name", one.name},
                                 {"seeds_weight_bytes", one.seeds_weight_bytes},
                                 {"weight_bytes", one.weight_bytes},
                                 {"master_bytes", one.master_bytes},
                                 {"gradient_bytes", one.gradient_bytes},
                                 {"activation_bytes", one.activation_bytes}});
  for (const auto& one : seeds_memory()) out["seeds"].push_back(definition_json(one));
  for (const auto& one : shoal_memory()) out["shoal"].push_back(definition_json(one));
  return out;
}

json estimate_json(const memory_choices& choices) {
  json out{{"model", shape_json(choices.shape)},
           {"optimizer", choices.optimizer},
           {"precision", choices.precision},
           {"offload", choices.offload},
           {"checkpointing", choices.checkpointing},
           {"swarm", choices.swarm},
           {"sharing", choices.sharing},
           {"batch", choices.batch},
           {"gpus", choices.gpus},
           {"zero", choices.zero},
           {"inputs", kernels::memory_inputs(choices)}};
  for (const auto& [name, list] :
       {std::pair{"seeds", &seeds_memory()}, std::pair{"shoal", &own_figures(choices)}}) {
    out[name] = json::array();
    for (const auto& one : kernels::estimate_memory(*list, choices)) {
      out[name].push_back(definition_json(*one.of));
      out[name].back()["value"] = one.value;
    }
  }
  return out;
}

std::string count_text(double value) {
  for (const auto& [unit, size] :
       {std::pair{"T", 1e12}, std::pair{"G", 1e9}, std::pair{"M", 1e6}, std::pair{"k", 1e3}})
    if (value >= 0.99995 * size) return fmt::format("{:.5g} {}", value / size, unit);
  return fmt::format("{:g}  ", value);
}

std::string figure_text(const kernels::memory_figure& of) {
  switch (of.of->unit) {
  case memory_unit::count:
    return count_text(of.value) + "   ";
  case memory_unit::bytes:
    return of.value < bytes_in_gib / 16 ? fmt::format("{:.2f} MiB", 1024 * of.value / bytes_in_gib)
                                        : fmt::format("{:.2f} GiB", of.value / bytes_in_gib);
  case memory_unit::seconds:
    break;
  }
  return fmt::format("{:.0f} ms ", 1000 * of.value);
}

void print_figures(const char* title, const std::vector<kernels::memory_figure>& figures) {
  fmt::print("\n{}\n", title);
  for (const auto& one : figures) {
    const bool total = one.of->name == "gpu" || one.of->name == "ram";
    if (one.value == 0 && !total) continue;
    fmt::print("{} {:<20} {:>14}   = {}\n", total ? '*' : ' ', one.of->name, figure_text(one),
               one.of->formula);
    if (!one.of->what.empty()) fmt::print("{:40}{}\n", "", one.of->what);
  }
}

void show_estimate(const memory_choices& choices) {
  const auto& shape = choices.shape;
  fmt::print("{}: {} layers of width {}, {} heads, inner width {}, context {}, vocabulary {}\n",
             shape.name, shape.layers, shape.dim, shape.heads, shape.hidden, shape.context,
             shape.vocabulary);
  fmt::print("{}, {}, {} at once{}{}{}{}\n", choices.optimizer, choices.precision,
             choices.batch == 1 ? "1 sample" : fmt::format("{} samples", choices.batch),
             choices.checkpointing ? ", checkpointing" : "", choices.offload ? ", offload" : "",
             choices.sharing > 0
                 ? fmt::format(", {} {} of layers with their own parameters", choices.sharing,
                               choices.sharing == 1 ? "group" : "groups")
                 : "",
             choices.swarm ? ", in a swarm" : "");
  print_figures("The seeds' calculator (they advise to add 20 to 30 %)",
                kernels::estimate_memory(seeds_memory(), choices));
  print_figures("Shoal's own", kernels::estimate_memory(own_figures(choices), choices));
  fmt::print("\nwith");
  for (const auto& [name, value] : kernels::memory_inputs(choices))
    fmt::print(" {}={:g}", name, value);
  fmt::print("\n");
}

std::string bytes_text(std::uint64_t bytes) {
  static const kernels::memory_definition unit{"", memory_unit::bytes, "", ""};
  return figure_text({&unit, static_cast<double>(bytes)});
}

/// The hosts of a pipeline hold a stage each.
void print_stages(const scenarios::pipeline_memory& memory) {
  fmt::print("By stage: training.method is pipeline, and no host holds the whole model. Values "
             "inside a pass come on top\n"
             "{:>7} {:>12} {:>14} {:>14} {:>14} {:>14}\n",
             "stage", "parameters", "weights", "gradients", "step", "total");
  for (std::size_t s = 0; s < memory.stages.size(); ++s) {
    const auto& one = memory.stages[s];
    fmt::print("{:>7} {:>12} {:>14} {:>14} {:>14} {:>14}\n", s,
               count_text(static_cast<double>(one.parameters)), bytes_text(one.weights),
               bytes_text(one.gradients), bytes_text(one.step), bytes_text(one.total()));
  }
  fmt::print("  a trainer keeps {} for each sample of its part of a batch\n",
             bytes_text(memory.trainer_per_sample));
}

json stages_json(const scenarios::pipeline_memory& memory) {
  json out = json::array();
  for (const auto& one : memory.stages)
    out.push_back({{"parameters", one.parameters},
                   {"weights", one.weights},
                   {"gradients", one.gradients},
                   {"step", one.step},
                   {"total", one.total()}});
  return out;
}

/// Without stages if the scenario trains no pipeline.
scenarios::pipeline_memory stages_of(const scenarios::scenario& what) {
  if (!what.program.definition().on_runner()) return {};
  return scenarios::memory_of_pipeline(what);
}

/// The estimate does not know the workload, as with ALBERT.
bool is_unknown(const scenarios::scenario& what) {
  const auto whole = scenarios::memory_choices_of(what);
  return whole && !*whole;
}

/// The figures of a swarm of experts, if the scenario is one.
std::optional<scenarios::expert_memory> experts_of(const scenarios::scenario& what) {
  if (!what.program.definition().on_runner()) return std::nullopt;
  const auto memory = scenarios::memory_of_experts(what);
  return memory.experts > 0 ? std::optional(memory) : std::nullopt;
}

int show_experts(const scenarios::expert_memory& of, bool as_json) {
  if (as_json) {
    fmt::print("{}\n", json_text(json{{"experts",
                                       {{"count", of.experts},
                                        {"hosts", of.hosts},
                                        {"parameters", of.parameters},
                                        {"expert", of.expert},
                                        {"host", of.of_host},
                                        {"trainer", of.trunk}}}},
                                 2));
    return exit_ok;
  }
  const auto line = [](const char* what, std::uint64_t bytes, const std::string& why) {
    fmt::print("  {:<10} {:>12}   {}\n", what, bytes_text(bytes), why);
  };
  fmt::print("training.method is experts: no host holds the whole model. Values inside a pass come "
             "on top\n");
  line("an expert", of.expert,
       fmt::format("{} parameters and the optimizer's state; {} experts in all",
                   count_text(static_cast<double>(of.parameters)), of.experts));
  line("its host", of.of_host,
       fmt::format("its share of the experts on {} hosts, and copies of others", of.hosts));
  line("a trainer", of.trunk, "the trunk and the gates, their optimizer, gradient and next state");
  return exit_ok;
}

int list_models(bool as_json) {
  if (as_json) {
    fmt::print("{}\n", json_text(memory_model_json(), 1));
    return exit_ok;
  }
  fmt::print("{:<12} {:>6} {:>6} {:>6} {:>7} {:>7} {:>10}\n", "model", "layers", "heads", "dim",
             "hidden", "context", "vocabulary");
  for (const auto& m : memory_models())
    fmt::print("{:<12} {:>6} {:>6} {:>6} {:>7} {:>7} {:>10}\n", m.name, m.layers, m.heads, m.dim,
               m.hidden, m.context, m.vocabulary);
  fmt::print("optimizers: {}\nprecisions: {}\n", fmt::join(names_in(memory_optimizers()), ", "),
             fmt::join(names_in(memory_precisions()), ", "));
  return exit_ok;
}

int memory(const memory_arguments& a) {
  if (a.list) return list_models(a.json);
  if (!is_named(a) && (!a.layers || !a.dim))
    return fail("give a scenario, --model NAME, or a shape with at least --layers and --dim; "
                "--list shows the models",
                exit_usage);
  std::optional<scenarios::scenario> what;
  scenarios::pipeline_memory staged;
  if (!a.file.empty()) {
    what = scenario_of(a);
    if (!what) return exit_bad_input;
    if (const auto experts = experts_of(*what)) return show_experts(*experts, a.json);
    staged = stages_of(*what);
  }
  if (!staged.stages.empty() && is_unknown(*what)) {
    if (a.json)
      fmt::print("{}\n", json_text(json{{"stages", stages_json(staged)}}, 2));
    else
      print_stages(staged);
    return exit_ok;
  }
  const auto choices = choices_of(a, what ? &*what : nullptr);
  if (!choices) return exit_bad_input;
  if (!a.json) {
    show_estimate(*choices);
    if (!staged.stages.empty()) {
      fmt::print("\n");
      print_stages(staged);
    }
    return exit_ok;
  }
  auto out = estimate_json(*choices);
  if (what) out["stages"] = stages_json(staged);
  fmt::print("{}\n", json_text(out, 2));
  return exit_ok;
}

} // namespace

void add_memory(CLI::App& app, action& chosen) {
  auto a = std::make_shared<memory_arguments>();
  auto* command =
      app.add_subcommand("memory", "show how much memory training a model takes, with formulas");
  auto* file =
      command->add_option("scenario", a->file, "take model, optimizer and batch from a YAML file")
          ->type_name("FILE");
  command->add_option("--set", a->sets, "override an option of the scenario")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false)
      ->needs(file);
  command->add_option("--model", a->model, "a model by name; --list shows them")
      ->type_name("NAME")
      ->excludes(file);
  const auto size = [&](const char* name, auto& into, const char* help) {
    command->add_option(name, into, help)->type_name("N");
  };
  size("--layers", a->layers, "layers");
  size("--dim", a->dim, "width");
  size("--heads", a->heads, "heads of attention (one for each 64 of the width)");
  size("--hidden", a->hidden, "width inside a layer (4 times the width)");
  size("--vocabulary", a->vocabulary, "number of tokens (50257)");
  size("--context", a->context, "tokens in a sample (1024)");
  size("--batch", a->batch, "samples at once (1)");
  size("--sharing", a->sharing,
       "number of groups of layers; the layers of a group share parameters "
       "(0: all have)");
  command
      ->add_option("--optimizer", a->optimizer,
                   "adam, adam-8bit, adam-16bit, adafactor, sgd, sgd-momentum (adam)")
      ->type_name("NAME");
  command->add_option("--precision", a->precision, "f32, mixed or f16 (mixed)")->type_name("NAME");
  command->add_flag("--checkpointing", a->checkpointing,
                    "compute activations again, layer by layer");
  command->add_flag("--offload", a->offload, "keep the optimizer's state in main memory");
  command->add_flag("--swarm", a->swarm,
                    "add the further memory of a peer in a swarm; a scenario implies it");
  size("--gpus", a->gpus, "the seeds' calculator only: GPUs (1)");
  size("--zero", a->zero, "the seeds' calculator only: stage of ZeRO (0)");
  command->add_flag("--list", a->list, "show the models; with --json all inputs of the figures");
  command->add_flag("--json", a->json, "print JSON on stdout");
  command->callback([a, &chosen] { chosen = [a] { return memory(*a); }; });
}

} // namespace shoal::tools
