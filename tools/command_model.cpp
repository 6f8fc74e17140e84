// shoal model info PATH: the contents of a model's file or folder, and whether they agree.
#include "kernels/base/json_text.hpp"
#include "kernels/learn/checkpoint.hpp"
#include "kernels/learn/formats/llama2c.hpp"
#include "kernels/learn/formats/model_config.hpp"
#include "kernels/learn/formats/model_weights.hpp"
#include "kernels/learn/text_codec.hpp"
#include "scenarios/compare/find_model.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace shoal::tools {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

struct model_arguments {
  std::string path;
  bool json = false, tensors = false;
};

/// The printed facts about a model.
struct model_report {
  std::vector<std::pair<std::string, std::string>> facts;
  struct tensor {
    std::string name, type;
    std::vector<std::int64_t> shape;
  };
  std::vector<tensor> tensors;
  std::vector<std::string> errors; ///< parts that do not agree
  std::int64_t parameters = 0;

  void add(const std::string& name, const std::string& value) { facts.emplace_back(name, value); }
  void count() {
    std::vector<learn::tensor_shape> shapes;
    for (const auto& each : tensors) shapes.push_back({each.name, each.shape});
    parameters = learn::parameter_count(shapes);
  }
};

void add_files(const learn::model_weights& from, model_report& to) {
  std::map<std::string, std::uint64_t> bytes;
  for (const auto& each : from.tensors()) {
    const std::string type(learn::to_string(each.type));
    to.tensors.push_back({each.name, type, each.shape});
    bytes[type] += each.end - each.begin;
  }
  for (const auto& [type, size] : bytes) to.add(type, fmt::format("{} bytes", size));
  if (from.files().size() > 1) to.add("files", std::to_string(from.files().size()));
  for (const auto& [key, value] : from.files().front().metadata())
    to.add("metadata " + learn::printable(key), learn::printable(value));
}

/// Compares the tensors with those that a model of this config has.
void compare_tensors(const learn::model_config& config, model_report& with) {
  const auto wanted = learn::tensors_of(config);
  if (!wanted) return with.errors.push_back(wanted.error());
  std::map<std::string, std::vector<std::int64_t>> found;
  for (const auto& each : with.tensors) found[each.name] = each.shape;
  std::size_t missing = 0;
  for (const auto& each : *wanted) {
    const auto here = found.find(each.name);
    if (here == found.end()) {
      if (++missing <= 3) with.errors.push_back("has no tensor '" + each.name + "'");
      continue;
    }
    if (here->second != each.shape)
      with.errors.push_back(fmt::format("has the tensor '{}' of shape {}; its config.json wants {}",
                                        each.name, learn::to_text(here->second),
                                        learn::to_text(each.shape)));
    found.erase(here);
  }
  if (missing > 3) with.errors.push_back(fmt::format("has {} more tensors missing", missing - 3));
  if (!found.empty())
    with.add("beside the model", fmt::format("{} tensors, such as '{}'", found.size(),
                                             learn::printable(found.begin()->first)));
}

void add_config(const learn::model_config& config, model_report& to) {
  const auto text = parse_json<json>(learn::model_config_json(config));
  for (const auto& [key, value] : text.items())
    if (key != "architectures" && key != "torch_dtype" && key != "model_type")
      to.add(key, value.is_string() ? value.get<std::string>() : json_text(value));
}

std::optional<model_report> of_hugging_face(const fs::path& folder) {
  model_report out;
  const auto config = learn::load_model_config(folder / "config.json");
  if (!config) return fail(config.error()), std::nullopt;
  out.add("format", "Hugging Face");
  out.add("model", std::string(learn::model_type(*config)));
  add_config(*config, out);
  if (!learn::model_weights::are_in(folder)) {
    out.errors.emplace_back("has neither model.safetensors nor model.safetensors.index.json");
    return out;
  }
  const auto file = learn::model_weights::open(folder);
  if (!file) return fail(file.error()), std::nullopt;
  add_files(*file, out);
  compare_tensors(*config, out);
  return out;
}

std::optional<model_report> of_safetensors(const fs::path& path) {
  const auto file = learn::model_weights::open(path);
  if (!file) return fail(file.error()), std::nullopt;
  model_report out;
  out.add("format", "safetensors");
  add_files(*file, out);
  return out;
}

std::optional<model_report> of_llama2c(const fs::path& path) {
  const auto model = learn::load_llama2c(path);
  if (!model) return fail(model.error()), std::nullopt;
  model_report out;
  const auto& s = model->shape;
  out.add("format", "llama2.c");
  out.add("model", "llama");
  for (const auto& [name, value] : {std::pair<const char*, std::int64_t>{"dim", s.dim},
                                    {"hidden_dim", s.hidden_dim},
                                    {"layers", s.layers},
                                    {"heads", s.heads},
                                    {"kv_heads", s.kv_heads},
                                    {"vocabulary", s.vocabulary},
                                    {"context", s.context}})
    out.add(name, std::to_string(value));
  out.add("tied", s.tied ? "true" : "false");
  for (const auto& each : model->tensors) out.tensors.push_back({each.name, "F32", each.shape});
  return out;
}

std::optional<model_report> of_checkpoint(const fs::path& path) {
  const auto file = scenarios::model_file(path);
  if (!file) return fail(file.error()), std::nullopt;
  const auto state = learn::load_checkpoint(*file);
  if (!state) return fail(state.error()), std::nullopt;
  model_report out;
  out.add("format", "checkpoint of Shoal");
  out.add("model", learn::shape_text(*state));
  out.add("epoch", std::to_string(state->epoch));
  out.add("steps", std::to_string(state->step));
  out.add("samples", std::to_string(state->samples));
  out.add("state", state->state_id);
  out.add("optimizer state", fmt::format("{} bytes", state->optimizer_state.size()));
  for (const auto& [key, value] : state->notes)
    out.add("note " + learn::printable(key), learn::printable(value));
  for (const auto& each : state->tensors) out.tensors.push_back({each.name, "F32", each.shape});
  return out;
}

bool begins_with(const fs::path& path, std::string_view magic) {
  std::ifstream in(path, std::ios::binary);
  std::string front(magic.size(), '\0');
  return in.read(front.data(), static_cast<std::streamsize>(front.size())) && front == magic;
}

std::optional<model_report> report_of(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error))
    return fs::exists(path / "config.json", error) ? of_hugging_face(path) : of_checkpoint(path);
  if (begins_with(path, "SHOALCKP")) return of_checkpoint(path);
  if (path.extension() == ".safetensors") return of_safetensors(path);
  if (path.extension() == ".bin") return of_llama2c(path);
  if (!fs::exists(path, error))
    fail(fmt::format("'{}' does not exist", path.string()));
  else
    fail(fmt::format("'{}' is no model: give a run directory, a checkpoint, a .safetensors, a .bin "
                     "of llama2.c, or a folder with config.json",
                     path.string()));
  return std::nullopt;
}

void print_json(const model_report& report, bool tensors) {
  json out;
  for (const auto& [name, value] : report.facts) out[name] = value;
  out["parameters"] = report.parameters;
  out["tensors"] = report.tensors.size();
  if (tensors) {
    json list = json::array();
    for (const auto& each : report.tensors)
      list.push_back({{"name", each.name}, {"dtype", each.type}, {"shape", each.shape}});
    out["list"] = std::move(list);
  }
  fmt::print("{}\n", clean_json_text(out, 2));
}

int info(const model_arguments& arguments) {
  auto report = report_of(arguments.path);
  if (!report) return exit_bad_input;
  report->count();
  if (arguments.json) {
    print_json(*report, arguments.tensors);
  } else {
    fmt::print("{}\n", arguments.path);
    for (const auto& [name, value] : report->facts) fmt::print("  {:<30}{}\n", name, value);
    fmt::print("  {:<30}{} in {} tensors\n", "parameters", report->parameters,
               report->tensors.size());
    if (arguments.tensors)
      for (const auto& each : report->tensors)
        fmt::print("    {:<8}{:<16}{}\n", each.type, learn::to_text(each.shape),
                   learn::printable(each.name));
  }
  for (const auto& each : report->errors)
    fmt::print(stderr, "error: '{}' {}\n", arguments.path, each);
  return report->errors.empty() ? exit_ok : exit_bad_input;
}

} // namespace

void add_model(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<model_arguments>();
  auto* command = app.add_subcommand("model", "look into the files of models");
  command->require_subcommand(1);
  auto* tells = command->add_subcommand(
      "info", "the sizes of a model; whether its tensors are those of its config.json");
  tells
      ->add_option("path", arguments->path,
                   "a folder of Hugging Face, a .safetensors, a .bin of llama2.c, a run directory "
                   "or its checkpoint")
      ->required()
      ->type_name("PATH");
  tells->add_flag("--tensors", arguments->tensors, "list all tensors");
  tells->add_flag("--json", arguments->json, "as JSON");
  tells->callback([arguments, &chosen] { chosen = [arguments] { return info(*arguments); }; });
}

} // namespace shoal::tools
