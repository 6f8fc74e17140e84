#include "tools/model_argument.hpp"

#include "tools/arguments.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

namespace shoal::tools {

namespace {

constexpr std::int64_t random_layers = 5;

} // namespace

void model_argument::add_to(CLI::App& command) {
  command
      .add_option("model", path,
                  "a .bin of llama2.c, a folder of Hugging Face with a LLaMA, a GPT-2 or a BLOOM, "
                  "or a checkpoint of a "
                  "transformer. 'random' is 5 layers with random weights, which write no language")
      ->required()
      ->type_name("MODEL");
  command
      .add_option(
          "--tokenizer", tokenizer,
          "the tokenizer that belongs to the model, of llama2.c or of Hugging Face, or bytes "
          "(default: tok<vocabulary>.bin, tokenizer.bin or tokenizer.json beside it)")
      ->type_name("FILE");
  command
      .add_option("--weights", weights, "form of the weights in memory: float32, bfloat16 or int8")
      ->type_name("FORM")
      ->capture_default_str()
      ->check(CLI::IsMember({"float32", "bfloat16", "int8"}));
}

std::shared_ptr<const learn::served_model> model_argument::load() const {
  if (path == "random")
    return std::make_shared<learn::served_model>(learn::random_served_model(random_layers, 1));
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    fail(fmt::format("there is no model '{}' ('random' needs no file)", path));
    return nullptr;
  }
  auto out = learn::load_served_model(path, tokenizer);
  if (out) return std::make_shared<learn::served_model>(std::move(*out));
  fail(out.error());
  return nullptr;
}

learn::weight_format model_argument::format() const {
  return weights == "int8"       ? learn::weight_format::int8
         : weights == "bfloat16" ? learn::weight_format::bfloat16
                                 : learn::weight_format::float32;
}

std::string process_name(const std::string& role) {
  return fmt::format("{}-{}-{}", role, host_name(), getpid());
}

} // namespace shoal::tools
