// shoal evaluate DIR|CKPT: the score of a pre-trained model in a downstream task.
#include "scenarios/compare/find_model.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/schema/load.hpp"
#include "scenarios/schema/option_diff.hpp"
#include "scenarios/workloads/albert.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"
#include "tools/interrupts.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <vector>
#if SHOAL_WITH_LEARN
#include "kernels/base/json_text.hpp"
#include "kernels/base/stats.hpp"
#include "kernels/base/student_t.hpp"
#include "kernels/learn/albert_description.hpp"
#include "kernels/learn/checkpoint.hpp"
#include "kernels/learn/evaluate_task.hpp"
#include "kernels/learn/pair_vocabulary_file.hpp"

#include <algorithm>
#include <cmath>
#endif

namespace shoal::tools {

namespace {

struct evaluate_arguments {
  std::string from, task, train, dev, test, json, tokenizer, pooling = "mean", best_by = "score";
  std::vector<std::string> outside;
  std::uint64_t seeds = 3, epochs = 20, length = 128, patience = 3;
  std::optional<std::uint64_t> batch; // default: as the model needs
  std::optional<double> learning_rate, threshold;
  bool every = false, scratch = false;
};

#if SHOAL_WITH_LEARN

namespace fs = std::filesystem;

/// One row of the table: a model and its scores.
struct row {
  std::string name;
  std::optional<std::uint64_t> steps, samples;
  std::vector<learn::task_result> results;
};

struct score_spread {
  double mean = 0, deviation = 0, half_width = 0; ///< half_width: of the 95 % interval
};

template <class Value>
score_spread spread_of(const std::vector<learn::task_result>& of, Value value) {
  score_spread out;
  std::vector<double> values;
  values.reserve(of.size());
  for (const auto& one : of) values.push_back(value(one));
  out.mean = mean(values);
  if (of.size() < 2) return out;
  const auto n = static_cast<double>(of.size());
  out.deviation = std::sqrt(variance(values) * n / (n - 1));
  out.half_width = *half_width_of_mean(values);
  return out;
}

score_spread score_in(const row& of) {
  return spread_of(of.results, [](const learn::task_result& one) { return one.test.score; });
}
score_spread accuracy_in(const row& of) {
  return spread_of(of.results, [](const learn::task_result& one) { return one.test.accuracy; });
}

/// All models of a run, by their epochs, or the one model. The last one of a run that goes on is
/// its last checkpoint. Errors: there is none.
result<std::vector<fs::path>> models_in(const evaluate_arguments& a) {
  const auto file = scenarios::model_file(a.from);
  auto out = a.every ? scenarios::checkpoints_of(a.from) : std::vector<fs::path>{};
  if (!file && out.empty()) return failure{file.error()};
  if (a.every && out.empty())
    return failure{fmt::format("'{}' has no checkpoints; run the scenario with --set "
                               "training.checkpoint_every=N",
                               a.from)};
  if (file) out.push_back(*file);
  return out;
}

result<learn::task_texts> texts_of(const evaluate_arguments& a) {
  learn::task_texts out;
  out.kind = a.task == "ner" ? learn::task_kind::ner : learn::task_kind::classification;
  const std::set<std::string> outside(a.outside.begin(), a.outside.end());
  const auto read = [&](const std::string& path, auto& into) -> result<void> {
    auto file = learn::read_labelled(path, out.kind, outside);
    if (!file) return failure{file.error()};
    if (file->left_out > 0)
      std::fprintf(stderr, "note: %s: %zu lines without a tab are left out\n", path.c_str(),
                   file->left_out);
    into = std::move(file->texts);
    return {};
  };
  if (auto done = read(a.train, out.train); !done) return failure{done.error()};
  if (auto done = read(a.dev, out.dev); !done) return failure{done.error()};
  if (auto done = read(a.test.empty() ? a.dev : a.test, out.test); !done)
    return failure{done.error()};
  return out;
}

/// The tokenizer that was named, or that of the run; empty for bytes.
std::string tokenizer_of(const evaluate_arguments& a) {
  if (!a.tokenizer.empty()) return a.tokenizer;
  const auto yaml = scenarios::read_file(fs::path(a.from) / "run.yaml");
  if (!yaml) return {};
  const auto options = scenarios::option_values(scenarios::parse_document(*yaml));
  const auto found = options.find("workload.tokenizer");
  return found == options.end() ? std::string{} : found->second;
}

/// The progress on a terminal: one line that rewrites itself.
class progress_line {
public:
  ~progress_line() { show({}); }
  void show(const std::string& text) {
    if (terminal_) std::fprintf(stderr, "\r\033[K%s", text.c_str());
    std::fflush(stderr);
  }

private:
  bool terminal_ = isatty(STDERR_FILENO) != 0;
};

learn::fine_tune_options training_of(const evaluate_arguments& a,
                                     const learn::albert_config& config) {
  auto out = learn::usual_fine_tuning(config);
  out.learning_rate = a.learning_rate.value_or(out.learning_rate);
  out.batch = a.batch.value_or(out.batch);
  out.threshold = a.threshold.value_or(out.threshold);
  out.epochs = a.epochs;
  out.patience = a.patience;
  return out;
}

/// All seeds of one model. Empty `parameters`: from drawn weights. Returns false when interrupted.
result<bool> measure(const evaluate_arguments& a, const learn::task_texts& texts,
                     const learn::albert_config& config, const learn::pair_vocabulary& vocabulary,
                     std::span<const float> parameters, row& into) {
  progress_line progress;
  for (std::uint64_t seed = 1; seed <= a.seeds; ++seed) {
    learn::evaluate_options options;
    options.length = std::min(static_cast<std::int64_t>(a.length), config.positions);
    options.mean = a.pooling == "mean";
    options.by_score = a.best_by == "score";
    auto& training = options.training = training_of(a, config);
    training.seed = seed;
    training.on_epoch = [&](std::size_t epoch, double loss) {
      progress.show(fmt::format("{}: seed {} of {}, epoch {} of at most {}, validation loss {:.4f}",
                                into.name, seed, a.seeds, epoch, a.epochs, loss));
      return !interrupted();
    };
    auto done = learn::evaluate_task(texts, config, parameters, vocabulary, options);
    if (!done) return failure{done.error()};
    if (interrupted()) return false;
    into.results.push_back(*done);
  }
  return true;
}

void print(const evaluate_arguments& a, const std::vector<row>& rows,
           const learn::fine_tune_options& training, double baseline) {
  const bool ner = a.task == "ner";
  fmt::print("{:<16} {:>8} {:>10}  {:<19} {:<19} {}\n", "model", "steps", "samples",
             ner ? "F1" : "accuracy", ner ? "accuracy of words" : "", "epochs");
  for (const auto& one : rows) {
    const auto score = score_in(one), accuracy = accuracy_in(one);
    const auto text = [&](const score_spread& of) {
      return one.results.size() < 2 ? fmt::format("{:.4f}", of.mean)
                                    : fmt::format("{:.4f} \u00b1 {:.4f}", of.mean, of.half_width);
    };
    std::string epochs;
    for (const auto& result : one.results)
      epochs += fmt::format("{}{}", epochs.empty() ? "" : " ", result.best_epoch);
    const auto number = [](const std::optional<std::uint64_t>& of) {
      return of ? fmt::format("{}", *of) : std::string("-");
    };
    fmt::print("{:<16} {:>8} {:>10}  {:<19} {:<19} {}\n", one.name, number(one.steps),
               number(one.samples), text(score), ner ? text(accuracy) : "", epochs);
  }
  fmt::print("{:<16} {:>8} {:>10}  {:.4f}\n", ner ? "look-up" : "naive Bayes", "-", "-", baseline);
  if (a.seeds > 1)
    fmt::print(
        "mean of {} seeds \u00b1 half of the 95 % interval (Student's t); 'epochs' are those "
        "with the {}\n",
        a.seeds, a.best_by == "score" ? "best validation score" : "lowest validation loss");
  fmt::print("fine-tuned at a rate of {}, in batches of {}, with a threshold of {}\n",
             training.learning_rate, training.batch, training.threshold);
  if (a.test.empty()) fmt::print("measured on the validation texts, because --test is not given\n");
}

nlohmann::json json_of(const evaluate_arguments& a, const std::vector<row>& rows,
                       const learn::fine_tune_options& training, double baseline) {
  nlohmann::json out{{"task", a.task},
                     {"train", a.train},
                     {"dev", a.dev},
                     {"test", a.test.empty() ? a.dev : a.test},
                     {"learning_rate", training.learning_rate},
                     {"batch", training.batch},
                     {"threshold", training.threshold},
                     {"length", a.length},
                     {"pooling", a.pooling},
                     {"best_by", a.best_by},
                     {"baseline", baseline},
                     {"models", nlohmann::json::array()}};
  for (const auto& one : rows) {
    const auto score = score_in(one);
    nlohmann::json model{{"name", one.name},
                         {"score",
                          {{"mean", score.mean},
                           {"deviation", score.deviation},
                           {"half_width_95", score.half_width}}},
                         {"seeds", nlohmann::json::array()}};
    if (one.steps) model["steps"] = *one.steps;
    if (one.samples) model["samples"] = *one.samples;
    for (const auto& result : one.results)
      model["seeds"].push_back({{"score", result.test.score},
                                {"precision", result.test.precision},
                                {"recall", result.test.recall},
                                {"accuracy", result.test.accuracy},
                                {"dev_loss", result.dev_loss},
                                {"dev_score", result.dev_score},
                                {"best_epoch", result.best_epoch},
                                {"epochs", result.epochs}});
    out["models"].push_back(std::move(model));
  }
  return out;
}

/// Writes the results to the file of --json, if one was named.
int save(const evaluate_arguments& a, const nlohmann::json& results) {
  if (a.json.empty()) return exit_ok;
  std::ofstream out(a.json);
  out << json_text(results, 2) << '\n';
  return out.flush() ? exit_ok : fail(fmt::format("cannot write '{}'", a.json));
}

/// The loss of the pre-training itself, on the held-out samples of the run.
int evaluate_masked(const evaluate_arguments& a, const std::vector<fs::path>& models) {
  const auto yaml = fs::path(a.from) / "run.yaml";
  const auto loaded = scenarios::load(yaml.string());
  if (!loaded.value)
    return fail(fmt::format("--task masked takes the directory of a run, and '{}' cannot be read",
                            yaml.string()));
  const auto task = scenarios::masked_task_of(*loaded.value);
  if (!task) return fail(task.error());
  fmt::print("{:<16} {:>8} {:>10} {:>14} {:>14} {:>14}\n", "model", "steps", "samples",
             "nats per token", "right tokens", "right order");
  auto rows = nlohmann::json::array();
  for (const auto& path : models) {
    const auto saved = learn::load_checkpoint(path);
    if (!saved) return fail(saved.error());
    const auto config = learn::albert_of(*saved);
    if (!config) return fail(fmt::format("checkpoint: '{}' {}", path.string(), config.error()));
    const auto found = task->measure(saved->parameters);
    fmt::print("{:<16} {:>8} {:>10} {:>14.4f} {:>14.4f} {:>14.4f}\n", path.stem().string(),
               saved->step, saved->samples, found.tokens, found.right_tokens, found.right_order);
    rows.push_back({{"name", path.stem().string()},
                    {"steps", saved->step},
                    {"samples", saved->samples},
                    {"nats_per_token", found.tokens},
                    {"right_tokens", found.right_tokens},
                    {"right_order", found.right_order}});
  }
  fmt::print("{:<16} {:>8} {:>10} {:>14.4f}\n{} labels in {} held-out samples\n", "unigrams", "-",
             "-", task->unigram_loss, task->labels, task->samples);
  return save(a, {{"task", a.task}, {"unigram_loss", task->unigram_loss}, {"models", rows}});
}

int evaluate(const evaluate_arguments& a) {
  const auto models = models_in(a);
  if (!models) return fail(models.error());
  if (a.task == "masked") return evaluate_masked(a, *models);
  if (a.train.empty() || a.dev.empty())
    return fail(fmt::format("--task {} needs --train and --dev", a.task));
  const auto texts = texts_of(a);
  if (!texts) return fail(texts.error());
  catch_interrupts();
  std::vector<row> rows;
  std::optional<learn::albert_config> config;
  std::optional<learn::pair_vocabulary> vocabulary;
  const auto add = [&](row one, std::span<const float> parameters) -> result<bool> {
    auto done = measure(a, *texts, *config, *vocabulary, parameters, one);
    if (done && *done) rows.push_back(std::move(one));
    return done;
  };
  for (const auto& path : *models) {
    const auto saved = learn::load_checkpoint(path);
    if (!saved) return fail(saved.error());
    const auto found = learn::albert_of(*saved);
    if (!found) return fail(fmt::format("checkpoint: '{}' {}", path.string(), found.error()));
    config = *found;
    auto loaded = learn::load_pair_vocabulary(tokenizer_of(a), found->vocabulary);
    if (!loaded) return fail(loaded.error());
    vocabulary = std::move(*loaded);
    if (a.scratch && rows.empty()) {
      const auto done = add({"from scratch", {}, {}, {}}, {});
      if (!done) return fail(done.error());
      if (!*done) return exit_interrupted;
    }
    const auto done =
        add({path.stem().string(), saved->step, saved->samples, {}}, saved->parameters);
    if (!done) return fail(done.error());
    if (!*done) return exit_interrupted;
  }
  const auto baseline = learn::baseline_score(*texts).score;
  const auto training = training_of(a, *config);
  print(a, rows, training, baseline);
  return save(a, json_of(a, rows, training, baseline));
}

#else

int evaluate(const evaluate_arguments&) {
  return fail("this shoal was built without libtorch (SHOAL_WITH_LEARN=OFF) and cannot use models");
}

#endif

} // namespace

void add_evaluate(CLI::App& app, action& chosen) {
  auto a = std::make_shared<evaluate_arguments>();
  auto* command =
      app.add_subcommand("evaluate", "fine-tune a pre-trained model for a task and measure it");
  command->add_option("model", a->from, "a run directory or a checkpoint of an albert")
      ->required()
      ->type_name("DIR|CKPT");
  command
      ->add_option(
          "--task", a->task,
          "ner: tags of words; classification: labels of texts; masked: the held-out samples "
          "of the run")
      ->required()
      ->check(CLI::IsMember({"ner", "classification", "masked"}));
  const auto file = [&](const char* name, std::string& into, const char* what) {
    return command->add_option(name, into, what)->type_name("FILE");
  };
  file("--train", a->train, "training texts: 'word TAB tag' lines, or columns label and text");
  file("--dev", a->dev, "validation texts, which decide when to stop");
  file("--test", a->test, "test texts; without it the validation texts are measured");
  file("--tokenizer", a->tokenizer, "tokenizer.json of the model; without it that of the run");
  file("--json", a->json, "also write the results to this file");
  command->add_option("--outside", a->outside, "tags that count as O")->type_name("TAG");
  const auto number = [&](const char* name, std::uint64_t& into, const char* what,
                          std::uint64_t most) {
    command->add_option(name, into, what)
        ->type_name("N")
        ->capture_default_str()
        ->check(CLI::Range(std::uint64_t{1}, most));
  };
  command
      ->add_option("--batch", a->batch,
                   "texts in a step [128; 16 for a model of less than 512 values a token]")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{65536}));
  number("--seeds", a->seeds, "trainings of each model, which differ in order and dropout", 100);
  number("--epochs", a->epochs, "most passes over the training texts", 10'000);
  number("--length", a->length, "most tokens of a text, at most those of the model", 65535);
  number("--patience", a->patience, "epochs without a better validation result before the end",
         1000);
  const auto word = [&](const char* name, std::string& into, const char* what,
                        std::vector<std::string> words) {
    command->add_option(name, into, what)->capture_default_str()->check(CLI::IsMember(words));
  };
  word("--best-by", a->best_by, "score or loss: the validation result that chooses the epoch",
       {"score", "loss"});
  word("--pooling", a->pooling,
       "classification: mean over the tokens of a text, or its first token as in the blog post",
       {"mean", "first"});
  const auto real = [&](const char* name, std::optional<double>& into, const char* what) {
    command->add_option(name, into, what)->type_name("X")->check(CLI::NonNegativeNumber);
  };
  real("--learning-rate", a->learning_rate,
       "rate at the start; it falls linearly to 0 [0.00001; 0.002 for such a model]");
  real("--threshold", a->threshold,
       "improvement of the validation result that counts for --patience [0.01; 0 for such a "
       "model]");
  command->add_flag("--every-checkpoint", a->every, "measure all checkpoints of the run");
  command->add_flag("--from-scratch", a->scratch, "also measure the model without pre-training");
  command->callback([a, &chosen] { chosen = [a] { return evaluate(*a); }; });
}

} // namespace shoal::tools
