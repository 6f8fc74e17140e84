// shoal generate DIR|CKPT: text from a trained model.
#include "scenarios/compare/find_model.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <span>
#if SHOAL_WITH_LEARN
#include "kernels/learn/checkpoint.hpp"
#include "kernels/learn/generate.hpp"
#include "kernels/learn/maxout_transformer.hpp"
#include "kernels/learn/torch_loader.hpp"
#include "kernels/learn/transformer_description.hpp"
#endif

namespace shoal::tools {

namespace {

struct generate_arguments {
  std::string from, prompt = "The license ";
  std::uint64_t tokens = 300, seed = 1, top_k = 40;
  double temperature = 0.7, top_p = 0.95;
};

#if SHOAL_WITH_LEARN

int generate(const generate_arguments& arguments) {
  auto file = scenarios::model_file(arguments.from);
  if (!file) return fail(file.error());
  auto state = learn::load_checkpoint(*file);
  if (!state) return fail(state.error());
  if (state->workload != "transformer")
    return fail(file->string() + " has " + learn::shape_text(*state) + ", which writes no text");
  const auto found = learn::any_transformer_of(*state);
  if (!found) return fail("checkpoint: '" + file->string() + "' " + found.error());
  const learn::text_codec& codec = learn::byte_codec();
  if (found->config.vocabulary != codec.vocabulary())
    return fail(fmt::format("{} has a vocabulary of {} tokens; only a model of bytes writes text",
                            file->string(), found->config.vocabulary));
  learn::sampling_options options;
  options.temperature = arguments.temperature;
  options.top_k = arguments.top_k;
  options.top_p = arguments.top_p;
  if (auto valid = learn::validate(options); !valid) return fail(valid.error());

  learn::use_one_thread();
  const auto made = learn::make_transformer(found->config, found->maxout);
  if (!made) return fail(made.error());
  const auto& model = **made;
  auto random = stream(arguments.seed, "generate");
  // A terminal gets only printable text. A file gets the bytes.
  const bool terminal = isatty(STDOUT_FILENO) != 0;
  auto print = [&](const std::string& bytes) {
    auto shown = terminal ? learn::printable(bytes) : bytes;
    return std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() &&
           std::fflush(stdout) == 0;
  };
  catch_interrupts();
  bool good = print(arguments.prompt);
  auto tokens = codec.encode(arguments.prompt);
  const auto line_feed = codec.encode("\n"); // an empty prompt stands for this
  for (std::uint64_t i = 0; i < arguments.tokens && good && !interrupted(); ++i) {
    const std::span<const learn::token_id> seen =
        tokens.empty() ? line_feed : std::span<const learn::token_id>(tokens);
    const auto next = learn::generate(model, state->parameters, seen, 1, options, random);
    good = print(codec.decode(next));
    tokens.push_back(next.front());
    // The model sees only the end of a long text.
    if (tokens.size() > 2 * model.context())
      tokens.erase(tokens.begin(), tokens.end() - static_cast<std::ptrdiff_t>(model.context()));
  }
  good = good && print("\n");
  if (!good) return fail("cannot write the text");
  return interrupted() ? exit_interrupted : exit_ok;
}

#else

int generate(const generate_arguments&) {
  return fail("this shoal was built without libtorch (SHOAL_WITH_LEARN=OFF) and cannot use models");
}

#endif

} // namespace

void add_generate(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<generate_arguments>();
  auto* command = app.add_subcommand("generate", "let a trained model write text");
  command->add_option("model", arguments->from, "a run directory or its final.ckpt")
      ->required()
      ->type_name("DIR|CKPT");
  command->add_option("--prompt", arguments->prompt, "the beginning of the text")
      ->type_name("TEXT")
      ->capture_default_str();
  command->add_option("--tokens", arguments->tokens, "bytes to write after it")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(1ul, 100'000'000ul));
  command->add_option("--temperature", arguments->temperature, "0 always takes the likeliest byte")
      ->type_name("T")
      ->capture_default_str();
  command->add_option("--top-k", arguments->top_k, "choose among the K likeliest bytes; 0: all")
      ->type_name("K")
      ->capture_default_str();
  command
      ->add_option("--top-p", arguments->top_p,
                   "choose among the likeliest bytes with this total probability")
      ->type_name("P")
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "the same seed writes the same text")
      ->type_name("N")
      ->capture_default_str();
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return generate(*arguments); }; });
}

} // namespace shoal::tools
