// shoal draw DIR|CKPT CAPTION...: pictures from a trained model.
#include "scenarios/compare/find_model.hpp"
#include "scenarios/observe/run_directory.hpp"
#include "scenarios/schema/load.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>
#if SHOAL_WITH_LEARN
#include "kernels/learn/checkpoint.hpp"
#include "kernels/learn/dalle.hpp"
#include "kernels/learn/dalle_description.hpp"
#include "kernels/learn/drawing.hpp"
#include "kernels/learn/pictures/png_file.hpp"
#include "kernels/learn/torch_loader.hpp"
#endif

namespace shoal::tools {

namespace {

struct draw_arguments {
  std::string from, pictures, out = "drawn.png";
  std::vector<std::string> captions;
  std::uint64_t count = 128, best = 4, seed = 1, top_k = 256, among = 128, passes = 12;
  std::optional<std::uint64_t> asked; ///< as many as `among`
  std::size_t threads = 0;            ///< 0: one for each core
  double temperature = 1, top_p = 0.75;
  bool score = false, best_given = false;
};

#if SHOAL_WITH_LEARN

/// The prepared file that was named, or that of the run with the model.
result<std::string> prepared_file(const draw_arguments& a, const std::filesystem::path& model) {
  if (!a.pictures.empty()) return a.pictures;
  // The model is final.ckpt of the run, or one of its checkpoints/.
  const auto folder = std::filesystem::absolute(model).parent_path();
  for (const auto& run : {folder, folder.parent_path()}) {
    const auto loaded = scenarios::load((run / "run.yaml").string());
    if (loaded.value && loaded.value->data.files.size() == 1)
      return loaded.value->data.files.front();
  }
  return failure{fmt::format("draw: no run.yaml beside '{}' names prepared pictures; give "
                             "--pictures FILE",
                             model.string())};
}

/// The pictures that the model was trained with.
result<learn::picture_samples> pictures_of(const draw_arguments& a, const learn::checkpoint& saved,
                                           const std::filesystem::path& model,
                                           const learn::dalle_config& config) {
  const auto file = prepared_file(a, model);
  if (!file) return failure{file.error()};
  auto set = learn::load_picture_set(*file);
  if (!set)
    return failure{set.error() +
                   (a.pictures.empty() ? "; --pictures FILE names another file" : "")};
  const auto digest = saved.notes.find("data_digest");
  if (digest != saved.notes.end() && digest->second != set->content.hex())
    return failure{fmt::format("pictures: those of '{}' are not those that the model was trained "
                               "with; --pictures FILE names another file",
                               *file)};
  return learn::picture_samples::make(std::move(*set), config, 0);
}

/// Says on stderr what the model cannot know of a caption.
void print_notes(const learn::picture_samples& data, const std::string& caption) {
  const auto unknown = learn::unknown_words(data, caption);
  if (!unknown.empty())
    fmt::print(stderr, "note: no caption in training has '{}'\n", fmt::join(unknown, "' or '"));
  const auto tokens = data.set().words->encode(caption).size();
  const auto most = static_cast<std::size_t>(data.format().config.text_length);
  if (tokens > most)
    fmt::print(stderr, "note: '{}' has {} tokens, and the model reads the first {}\n", caption,
               tokens, most);
}

/// Draws for each caption, and keeps the best.
std::vector<learn::picture> best_pictures(const draw_arguments& a, const learn::dalle& model,
                                          std::span<const float> parameters,
                                          const learn::picture_samples& data,
                                          const learn::sampling_options& options,
                                          const learn::contrastive_pair* ranker) {
  std::vector<learn::picture> out;
  for (const auto& caption : a.captions) {
    const auto drawn =
        learn::drawn_codes(model, parameters, data, caption, a.count, options, a.seed);
    std::vector<std::size_t> order(drawn.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (ranker != nullptr)
      order = learn::ranked(*ranker, learn::caption_tokens(data, caption), drawn);
    order.resize(std::min<std::size_t>(a.best, order.size()));
    for (const auto i : order) out.push_back(data.set().coder->decode(drawn[i]));
  }
  return out;
}

void print_score(const learn::drawing_score& of, bool held_out) {
  fmt::print("{} {}, nats for each code\n", of.pictures,
             held_out ? "held-out pictures" : "pictures of training, as none are held out");
  fmt::print("  the model                          {:.4f}\n", of.image);
  fmt::print("  the model, captions of others      {:.4f}\n", of.shuffled);
  fmt::print("  frequencies of each position       {:.4f}\n", of.unigram);
  fmt::print("  nats for each token of a caption   {:.4f}\n", of.text);
  if (of.among == 0) return;
  fmt::print("the right picture among {} comes first, for {} captions\n", of.among, of.asked);
  fmt::print("  by the model's likelihood          {:.3f}\n", of.best_likelihood);
  fmt::print("  by the contrastive pair            {:.3f}\n", of.best_contrastive);
}

void print_drawn(const learn::drawn_score& of, const draw_arguments& a) {
  fmt::print("the right picture among {} is the nearest in its pixels, for {} captions\n", of.among,
             of.asked);
  fmt::print("  to the first drawn picture         {:.3f}, PSNR {:.2f} dB\n", of.first,
             of.psnr_first);
  fmt::print("  to the best of {:<20}{:.3f}, PSNR {:.2f} dB\n", a.count, of.best, of.psnr_best);
}

int draw(const draw_arguments& a) {
  if (a.captions.empty() && !a.score)
    return fail("draw: give a caption in quotes, or --score", exit_usage);
  for (const auto& caption : a.captions)
    if (caption.find_first_not_of(' ') == std::string::npos)
      return fail("draw: a caption is empty", exit_usage);
  if (a.best_given && a.best > a.count)
    return fail(fmt::format("draw: --best {} is more than --count {}", a.best, a.count),
                exit_usage);
  const auto file = scenarios::model_file(a.from);
  if (!file) return fail(file.error());
  const auto saved = learn::load_checkpoint(*file);
  if (!saved) return fail(saved.error());
  const auto config = learn::dalle_of(*saved);
  if (!config) return fail(fmt::format("checkpoint: '{}' {}", file->string(), config.error()));
  const auto data = pictures_of(a, *saved, *file, *config);
  if (!data) return fail(data.error());
  const learn::sampling_options options{a.temperature, a.top_k, a.top_p};
  if (auto valid = learn::validate(options); !valid) return fail(valid.error());
  if (auto loaded = learn::load_torch(); !loaded) return fail(loaded.error());
  learn::use_one_thread();
  const learn::dalle model(*config);
  std::optional<learn::contrastive_pair> ranker;
  if (a.best < a.count || a.score) {
    learn::contrastive_training training;
    training.passes = a.passes;
    if (data->set().places(false).size() < 2)
      return fail("draw: the prepared file has no two pictures to train a ranking with");
    ranker = learn::train_ranker(*data, training, [&](std::size_t pass, double loss) {
      if (pass == a.passes)
        fmt::print(stderr, "the contrastive pair has a loss of {:.3f} in training\n", loss);
    });
  }
  if (a.score) {
    const learn::scoring how{.among = a.among,
                             .asked = a.asked.value_or(a.among),
                             .threads =
                                 a.threads > 0 ? a.threads : std::thread::hardware_concurrency()};
    print_score(learn::score_drawing(model, saved->parameters, *data, how, *ranker),
                !data->set().places(true).empty());
    if (a.among > 0)
      print_drawn(learn::score_drawn(model, saved->parameters, *data, how, a.count, options,
                                     *ranker, a.seed),
                  a);
  }
  if (a.captions.empty()) return exit_ok;
  for (const auto& caption : a.captions) print_notes(*data, caption);
  const auto shown =
      best_pictures(a, model, saved->parameters, *data, options, ranker ? &*ranker : nullptr);
  const auto columns = a.captions.size() > 1 ? std::min(a.best, a.count) : std::uint64_t{8};
  if (const auto done = learn::write_png(learn::contact_sheet(shown, columns, 4), a.out); !done)
    return fail(done.error());
  fmt::print("{}: {} of {} pictures for {}\n", a.out, std::min(a.best, a.count), a.count,
             a.captions.size() == 1
                 ? fmt::format("'{}'", a.captions[0])
                 : fmt::format("each of {} captions, a row each", a.captions.size()));
  return exit_ok;
}

#else

int draw(const draw_arguments&) {
  return fail("this shoal was built without libtorch (SHOAL_WITH_LEARN=OFF) and cannot use models");
}

#endif

} // namespace

void add_draw(CLI::App& app, action& chosen) {
  auto a = std::make_shared<draw_arguments>();
  auto* command = app.add_subcommand("draw", "draw pictures for captions with a trained model");
  command->add_option("model", a->from, "a run directory or a checkpoint of a dalle")
      ->required()
      ->type_name("DIR|CKPT");
  command->add_option("captions", a->captions, "what to draw")->type_name("CAPTION...");
  const auto number = [&](const char* name, std::uint64_t& into, const char* what,
                          std::uint64_t least, std::uint64_t most) {
    command->add_option(name, into, what)
        ->type_name("N")
        ->capture_default_str()
        ->check(CLI::Range(least, most));
  };
  number("--count", a->count, "pictures that are drawn for each caption", 1, 65536);
  number("--best", a->best,
         "pictures that are kept: those that a small contrastive pair, trained with the same "
         "pictures, finds most like the caption",
         1, 1024);
  command->add_option("-o,--out", a->out, "the contact sheet to write, as PNG")
      ->type_name("FILE")
      ->capture_default_str();
  command
      ->add_option("--pictures", a->pictures,
                   "the file of shoal images prepare; without it that of the run")
      ->type_name("FILE");
  command->add_option("--temperature", a->temperature, "0 always takes the likeliest code")
      ->type_name("X")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  number("--top-k", a->top_k, "likeliest codes that are drawn from; 0: all", 0, 65536);
  command->add_option("--top-p", a->top_p, "probability of the likeliest codes that are drawn from")
      ->type_name("P")
      ->capture_default_str();
  number("--seed", a->seed, "equal seeds give equal pictures", 0, std::uint64_t{1} << 62);
  number("--passes", a->passes, "passes over the pictures that train the contrastive pair", 1,
         1000);
  command->add_flag("--score", a->score,
                    "measure the model on held-out pictures: nats for each code, how often it "
                    "finds the right picture, and how often it draws it");
  number("--among", a->among, "held-out pictures among which --score looks for the right one", 0,
         1024);
  command
      ->add_option("--asked", a->asked,
                   "captions whose pictures --score looks for and draws (default: as many as "
                   "--among)")
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1024}));
  command->add_option("-j,--threads", a->threads, "threads of --score (default: one for each core)")
      ->type_name("N")
      ->check(CLI::Range(1u, 1024u));
  command->callback([a, command, &chosen] {
    a->best_given = command->count("--best") > 0;
    chosen = [a] { return draw(*a); };
  });
}

} // namespace shoal::tools
