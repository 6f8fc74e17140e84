// shoal tokenizer train, encode, decode, info: vocabularies, and texts as tokens.
#include "kernels/base/json_text.hpp"
#include "kernels/learn/formats/tokenizer_json.hpp"
#include "kernels/learn/formats/whole_file.hpp"
#include "kernels/learn/text_file.hpp"
#include "kernels/learn/tokenizer/load_tokenizer.hpp"
#include "kernels/learn/tokenizer/train_tokenizer.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace shoal::tools {

namespace {

struct tokenizer_arguments {
  std::vector<std::string> files; ///< texts to train with, or words on the command line
  std::string path, out = "tokenizer.json", rules = "general", field = "text";
  std::uint64_t vocabulary = 8000, longest = 16;
  double coverage = 0.9995;
  bool keep_case = false, special = false, pieces = false, json = false;
};

constexpr std::uint64_t most_text = std::uint64_t{1} << 32;

std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

int train(const tokenizer_arguments& arguments) {
  const auto rules = arguments.rules == "bengali" ? learn::text_rules::bengali
                     : arguments.rules == "none"  ? learn::text_rules::none
                                                  : learn::text_rules::general;
  const auto pipeline = learn::albert_pipeline(rules, !arguments.keep_case);
  learn::word_counts words(pipeline);
  std::uint64_t bytes = 0;
  for (const auto& file : arguments.files) {
    auto text = learn::read_text_file(file, arguments.field, most_text);
    if (!text) return fail(text.error());
    bytes += text->size();
    words.add(text_of(*text));
  }
  fmt::print(stderr, "{} bytes in {} files: {} words, {} different\n", bytes,
             arguments.files.size(), words.total(), words.different());
  learn::unigram_training options;
  options.vocabulary = arguments.vocabulary;
  options.character_coverage = arguments.coverage;
  options.longest_piece = arguments.longest;
  auto trained =
      learn::train_tokenizer(words, pipeline, options, [](const learn::unigram_progress& now) {
        fmt::print(stderr, "{:>8} pieces, {} wanted: {:.4f} nats in each word\n", now.pieces,
                   now.wanted, -now.log_likelihood);
      });
  if (!trained) return fail("cannot train a tokenizer: " + trained.error());
  if (auto written =
          learn::write_whole_file(arguments.out, learn::tokenizer_json(*trained), "tokenizer");
      !written)
    return fail(written.error());
  fmt::print("{}: Unigram, {} tokens\n", arguments.out,
             std::get<learn::unigram_description>(trained->model).pieces.size());
  return exit_ok;
}

/// Calls `each(line)` for the arguments, or for the lines of standard input without arguments.
int for_each_line(const tokenizer_arguments& arguments,
                  const std::function<int(const std::string&)>& each) {
  for (const auto& line : arguments.files)
    if (const int status = each(line); status != exit_ok) return status;
  if (!arguments.files.empty()) return exit_ok;
  for (std::string line; std::getline(std::cin, line);)
    if (const int status = each(line); status != exit_ok) return status;
  return exit_ok;
}

int encode(const tokenizer_arguments& arguments) {
  const auto loaded = learn::load_tokenizer(arguments.path);
  if (!loaded) return fail(loaded.error());
  if (loaded->pipeline == nullptr && (arguments.special || arguments.pieces))
    return fail(fmt::format("'{}' is of {}, which has no --special and no --pieces", arguments.path,
                            loaded->kind),
                exit_usage);
  return for_each_line(arguments, [&](const std::string& line) {
    const auto ids =
        arguments.special ? loaded->pipeline->encode_single(line).ids : loaded->codec->encode(line);
    std::vector<std::string> words;
    for (const auto id : ids)
      words.push_back(arguments.pieces ? loaded->pipeline->token(id) : std::to_string(id));
    fmt::print("{}\n", fmt::join(words, " "));
    return exit_ok;
  });
}

int decode(const tokenizer_arguments& arguments) {
  const auto loaded = learn::load_tokenizer(arguments.path);
  if (!loaded) return fail(loaded.error());
  const auto decode_line = [&](std::string_view line) {
    std::vector<learn::token_id> ids;
    for (;;) {
      const auto begin = line.find_first_not_of(" ,\t\r");
      if (begin == std::string_view::npos) break;
      line.remove_prefix(begin);
      learn::token_id id = -1;
      const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), id);
      if (error != std::errc{} || id < 0 || id >= loaded->codec->vocabulary())
        return fail(fmt::format("'{}' is no token of '{}': tokens are numbers from 0 to {}",
                                learn::printable(line.substr(0, line.find_first_of(" ,\t"))),
                                arguments.path, loaded->codec->vocabulary() - 1));
      ids.push_back(id);
      line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    }
    fmt::print("{}\n", arguments.special && loaded->pipeline != nullptr
                           ? loaded->pipeline->decode_with_special(ids)
                           : loaded->codec->decode(ids));
    return exit_ok;
  };
  if (arguments.files.empty())
    return for_each_line(arguments, [&](const std::string& line) { return decode_line(line); });
  return decode_line(fmt::format("{}", fmt::join(arguments.files, " ")));
}

int info(const tokenizer_arguments& arguments) {
  const auto loaded = learn::load_tokenizer(arguments.path);
  if (!loaded) return fail(loaded.error());
  auto facts = loaded->facts;
  facts.insert(facts.begin(),
               {{"model", loaded->kind}, {"tokens", std::to_string(loaded->codec->vocabulary())}});
  std::uint64_t bytes = 0, tokens = 0, unknown = 0;
  const auto* unigram = loaded->pipeline == nullptr
                            ? nullptr
                            : dynamic_cast<const learn::unigram*>(&loaded->pipeline->model());
  for (const auto& file : arguments.files) {
    const auto text = learn::read_text_file(file, arguments.field, most_text);
    if (!text) return fail(text.error());
    bytes += text->size();
    auto rest = text_of(*text);
    while (!rest.empty()) {
      const auto end = std::min(rest.find('\n'), rest.size());
      for (const auto id : loaded->codec->encode(rest.substr(0, end))) {
        ++tokens;
        unknown += unigram != nullptr && id == unigram->unknown() ? 1 : 0;
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  if (tokens > 0) {
    facts.emplace_back("text", fmt::format("{} bytes, {} tokens", bytes, tokens));
    facts.emplace_back(
        "bytes for each token",
        fmt::format("{:.3f}", static_cast<double>(bytes) / static_cast<double>(tokens)));
    if (unigram != nullptr)
      facts.emplace_back("unknown", fmt::format("{:.4f} %", 100 * static_cast<double>(unknown) /
                                                                static_cast<double>(tokens)));
  }
  if (arguments.json) {
    nlohmann::ordered_json out;
    for (const auto& [name, value] : facts) out[name] = value;
    fmt::print("{}\n", json_text(out, 2));
    return exit_ok;
  }
  fmt::print("{}\n", arguments.path);
  for (const auto& [name, value] : facts) fmt::print("  {:<22}{}\n", name, value);
  return exit_ok;
}

} // namespace

void add_tokenizer(CLI::App& app, action& chosen) {
  auto arguments = std::make_shared<tokenizer_arguments>();
  auto* command = app.add_subcommand("tokenizer", "train a vocabulary; turn texts into tokens");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* what,
                       int (*work)(const tokenizer_arguments&)) {
    auto* out = command->add_subcommand(name, what);
    out->callback(
        [arguments, work, &chosen] { chosen = [arguments, work] { return work(*arguments); }; });
    return out;
  };
  const auto add_path = [&](CLI::App* to) {
    to->add_option("tokenizer", arguments->path,
                   "a tokenizer.json, a .model of SentencePiece, a .bin of llama2.c, a folder with "
                   "one, or 'bytes'")
        ->required()
        ->type_name("TOKENIZER");
  };

  auto* trains = add("train", "train a Unigram vocabulary from texts", train);
  trains
      ->add_option("files", arguments->files,
                   "texts; also .jsonl, and either of them as .zst or .br")
      ->required()
      ->type_name("FILE...");
  trains->add_option("--vocab", arguments->vocabulary, "tokens, with the five special ones")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(6ul, 1'000'000ul));
  trains->add_option("-o,--out", arguments->out, "the tokenizer.json to write")
      ->type_name("FILE")
      ->capture_default_str();
  trains
      ->add_option("--rules", arguments->rules,
                   "how texts are normalized: general (NFKC, spaces), bengali (also sahajBERT's "
                   "rules for dandas and visargas) or none")
      ->type_name("RULES")
      ->capture_default_str()
      ->check(CLI::IsMember({"general", "bengali", "none"}));
  trains->add_flag("--keep-case", arguments->keep_case, "do not turn capitals into small letters");
  trains
      ->add_option("--coverage", arguments->coverage,
                   "the fraction of all characters that must be tokens; rarer ones are unknown")
      ->type_name("P")
      ->capture_default_str()
      ->check(CLI::Range(0.5, 1.0));
  trains->add_option("--longest", arguments->longest, "characters of a token, at most")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(1ul, 64ul));
  trains->add_option("--field", arguments->field, "the text's field in .jsonl files")
      ->type_name("NAME")
      ->capture_default_str();

  auto* encodes = add("encode", "print the tokens of texts", encode);
  add_path(encodes);
  encodes->add_option("texts", arguments->files, "without any, each line of standard input")
      ->type_name("TEXT...");
  encodes->add_flag("--special", arguments->special, "with the special tokens around each text");
  encodes->add_flag("--pieces", arguments->pieces, "the texts of tokens, not their numbers");

  auto* decodes = add("decode", "print the text of tokens", decode);
  add_path(decodes);
  decodes->add_option("tokens", arguments->files, "without any, each line of standard input")
      ->type_name("N...");
  decodes->add_flag("--special", arguments->special, "with special tokens");

  auto* tells = add("info", "describe a tokenizer, and measure it on texts", info);
  add_path(tells);
  tells->add_option("files", arguments->files, "texts to measure it on")->type_name("FILE...");
  tells->add_option("--field", arguments->field, "the text's field in .jsonl files")
      ->type_name("NAME")
      ->capture_default_str();
  tells->add_flag("--json", arguments->json, "as JSON");
}

} // namespace shoal::tools
