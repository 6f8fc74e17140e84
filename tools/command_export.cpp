// shoal export RUN: the model or the history of a run in the forms of other programs. The formats
// of models are here; those of histories are in scenarios/export.
#include "kernels/learn/checkpoint.hpp"
#include "kernels/learn/formats/export_model.hpp"
#include "kernels/learn/formats/tokenizer_config.hpp"
#include "kernels/learn/formats/tokenizer_json.hpp"
#include "kernels/learn/formats/whole_file.hpp"
#include "scenarios/compare/find_model.hpp"
#include "scenarios/export/export_formats.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace shoal::tools {

namespace {

struct export_arguments {
  std::string from, format = "hf", out, tokenizer;
  std::vector<std::string> histories; ///< a place for each of export_formats(); empty: not asked
};

int export_model(const export_arguments& arguments) {
  namespace fs = std::filesystem;
  const auto file = scenarios::model_file(arguments.from);
  if (!file) return fail(file.error());
  const auto state = learn::load_checkpoint(*file);
  if (!state) return fail(state.error());
  if (arguments.format == "safetensors") {
    if (!arguments.tokenizer.empty())
      return fail("--tokenizer belongs to --format hf, which writes a folder", exit_usage);
    if (auto written = learn::export_safetensors(*state, arguments.out); !written)
      return fail(written.error());
    fmt::print("{}: {} tensors, {} parameters\n", arguments.out, state->tensors.size(),
               state->parameters.size());
    return exit_ok;
  }
  const auto config = learn::hugging_face_config(*state);
  if (!config) return fail(fmt::format("'{}' {}", file->string(), config.error()));
  std::string tokenizer_config;
  if (!arguments.tokenizer.empty()) {
    // A model with another number of tokens would read beyond its embedding.
    const auto codec = learn::load_tokenizer_json(arguments.tokenizer);
    if (!codec) return fail(codec.error());
    const auto rows = std::visit([](const auto& sizes) { return sizes.vocabulary; }, *config);
    if (codec->vocabulary() != rows)
      return fail(fmt::format("'{}' has {} tokens; the model has {}", arguments.tokenizer,
                              codec->vocabulary(), rows));
    tokenizer_config = learn::tokenizer_config_json(
        codec->description(),
        std::visit([](const auto& sizes) { return sizes.positions; }, *config));
  }
  if (auto written = learn::export_hugging_face(*state, arguments.out); !written)
    return fail(written.error());
  if (!arguments.tokenizer.empty()) {
    std::error_code error;
    fs::copy_file(arguments.tokenizer, fs::path(arguments.out) / "tokenizer.json", error);
    if (error)
      return fail(fmt::format("cannot copy '{}' to '{}': {}", arguments.tokenizer, arguments.out,
                              error.message()));
    if (const auto written = learn::write_whole_file(
            fs::path(arguments.out) / "tokenizer_config.json", tokenizer_config, "tokenizer");
        !written)
      return fail(written.error());
  }
  fmt::print("{}: config.json and model.safetensors, {} tensors, {} parameters\n", arguments.out,
             state->tensors.size(), state->parameters.size());
  return exit_ok;
}

int export_histories(const export_arguments& arguments) {
  const auto run = scenarios::read_recorded_run(arguments.from);
  if (!run) return fail(run.error());
  const auto formats = scenarios::export_formats();
  for (std::size_t i = 0; i < formats.size(); ++i) {
    if (arguments.histories[i].empty()) continue;
    const auto said = formats[i].write(*run, arguments.histories[i]);
    if (!said) return fail(said.error());
    fmt::print("{}: {}\n", arguments.histories[i], *said);
  }
  return exit_ok;
}

int export_run(const export_arguments& arguments) {
  bool some = false;
  std::string options;
  for (std::size_t i = 0; i < arguments.histories.size(); ++i) {
    some = some || !arguments.histories[i].empty();
    options += fmt::format(", --{}", scenarios::export_formats()[i].name);
  }
  if (!some && arguments.out.empty())
    return fail(fmt::format("nothing to write: --out PATH writes the model; the history: {}",
                            options.substr(2)),
                exit_usage);
  if (some)
    if (const int status = export_histories(arguments); status != exit_ok) return status;
  return arguments.out.empty() ? exit_ok : export_model(arguments);
}

} // namespace

void add_export(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<export_arguments>();
  auto* command = app.add_subcommand(
      "export", "write the model or the history of a run in the forms of other programs");
  command->add_option("model", arguments->from, "a run directory or its checkpoint")
      ->required()
      ->type_name("DIR|CKPT");
  command
      ->add_option("--format", arguments->format,
                   "hf: a folder that transformers loads; safetensors: the tensors of any model")
      ->type_name("FORMAT")
      ->capture_default_str()
      ->check(CLI::IsMember({"hf", "safetensors"}));
  command->add_option("-o,--out", arguments->out, "the model's new folder, or its file")
      ->type_name("PATH");
  command
      ->add_option("--tokenizer", arguments->tokenizer,
                   "a tokenizer.json that goes into the folder, too")
      ->type_name("FILE");
  const auto formats = scenarios::export_formats();
  arguments->histories.resize(formats.size());
  for (std::size_t i = 0; i < formats.size(); ++i)
    command
        ->add_option(fmt::format("--{}", formats[i].name), arguments->histories[i],
                     std::string(formats[i].meaning))
        ->type_name(std::string(formats[i].place));
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return export_run(*arguments); }; });
}

} // namespace shoal::tools
