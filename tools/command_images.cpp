// shoal images prepare, info, show: pictures with captions as codes that a model can learn.
#include "kernels/learn/pictures/caption_table.hpp"
#include "kernels/learn/pictures/picture_coder.hpp"
#include "kernels/learn/pictures/picture_set.hpp"
#include "kernels/learn/pictures/png_file.hpp"
#include "kernels/learn/tokenizer/train_tokenizer.hpp"
#include "tools/arguments.hpp"
#include "tools/commands.hpp"
#include "tools/exit_codes.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace shoal::tools {

namespace {

struct images_arguments {
  std::string folder, table, out, file_column = "file", caption_column = "caption", search;
  std::string codebook = learn::picture_coders().all().front().name;
  std::uint64_t size = 32, patch = 4, codes = 512, vocabulary = 1000, seed = 1;
  std::uint64_t passes = 0; ///< 0: those of the kind of codebook
  std::size_t threads = 0;  ///< 0: one for each core
  std::uint64_t shortest = 3, most = 16;
  double aspect = 2, held_out = 0.1;
};

/// Pictures that passed the filters, and the number of those that did not.
struct filtered_pictures {
  std::vector<learn::picture> pictures;
  std::vector<std::string> captions;
  std::uint64_t png_bytes = 0;
  std::size_t short_captions = 0, long_shapes = 0;
};

result<filtered_pictures> read_pictures(const images_arguments& a) {
  const auto files = a.table.empty() ? learn::read_caption_folder(a.folder)
                                     : learn::read_caption_table(a.table, a.folder, a.file_column,
                                                                 a.caption_column);
  if (!files) return failure{files.error()};
  filtered_pictures out;
  for (const auto& file : *files) {
    if (file.caption.size() < a.shortest) {
      ++out.short_captions;
      continue;
    }
    auto read = learn::read_png(file.path);
    if (!read) return failure{read.error()};
    if (learn::aspect_of(*read) > a.aspect) {
      ++out.long_shapes;
      continue;
    }
    std::error_code error;
    out.png_bytes += std::filesystem::file_size(file.path, error);
    out.pictures.push_back(learn::squared(*read, a.size));
    out.captions.push_back(file.caption);
  }
  if (out.pictures.empty())
    return failure{fmt::format("images: no picture is left: {} have a caption of fewer than {} "
                               "characters, and {} are longer than {} times their width",
                               out.short_captions, a.shortest, out.long_shapes, a.aspect)};
  return out;
}

/// The PSNR over all pixels of the pictures at `places`, in dB.
double psnr_of(const learn::picture_set& set, const std::vector<learn::picture>& pictures,
               const std::vector<std::size_t>& places) {
  double error = 0;
  for (const auto i : places)
    error += learn::squared_error(pictures[i], set.coder->decode(set.codes[i])) /
             static_cast<double>(places.size());
  return learn::psnr(error);
}

result<learn::tokenizer_description> words_of(const std::vector<std::string>& captions,
                                              std::uint64_t tokens) {
  const auto pipeline = learn::albert_pipeline(learn::text_rules::general, true);
  learn::word_counts words(pipeline);
  for (const auto& caption : captions) words.add(caption);
  learn::unigram_training options;
  options.vocabulary = tokens;
  options.character_coverage = 1;
  auto trained = learn::train_tokenizer(words, pipeline, options);
  if (!trained)
    return failure{"images: the captions give no vocabulary: " + trained.error() +
                   "; choose another --vocab"};
  return std::move(*trained);
}

/// Learns the chosen kind of codebook from these pictures.
learn::made_coder coder_of(const images_arguments& a, const std::vector<learn::picture>& pictures) {
  const auto& kind = *learn::picture_coders().find(a.codebook);
  learn::coder_training options{a.patch, a.codes, a.passes > 0 ? a.passes : kind.passes, a.seed};
  options.threads = a.threads > 0 ? a.threads : std::thread::hardware_concurrency();
  return kind.train(pictures, options, [&](std::size_t pass, double quality) {
    fmt::print(stderr, "pass {} of {}: {:.2f} dB\n", pass, options.passes, quality);
  });
}

int prepare(const images_arguments& a) {
  auto read = read_pictures(a);
  if (!read) return fail(read.error());
  learn::picture_set set;
  set.captions = std::move(read->captions);
  set.held_out = learn::choose_held_out(set.captions, a.held_out, a.seed);
  std::vector<learn::picture> trained;
  std::vector<std::string> captions;
  for (const auto i : set.places(false)) {
    trained.push_back(read->pictures[i]);
    captions.push_back(set.captions[i]);
  }
  auto words = words_of(captions, a.vocabulary);
  if (!words) return fail(words.error());
  if (const auto used = set.use_words(std::move(*words)); !used) return fail(used.error());
  auto coder = coder_of(a, trained);
  if (!coder) return fail(coder.error());
  set.coder = std::move(*coder);
  for (const auto& one : read->pictures) set.codes.push_back(set.coder->encode(one));
  if (const auto saved = learn::save(set, a.out); !saved) return fail(saved.error());

  const auto seen = set.places(false), unseen = set.places(true);
  std::size_t longest = 0, cut = 0;
  for (const auto& caption : set.captions) {
    const auto tokens = set.words->encode(caption).size();
    longest = std::max(longest, tokens);
    cut += tokens > a.most ? 1 : 0;
  }
  const auto count = set.captions.size(), codes = set.coder->grid().places();
  const auto bits = std::ceil(std::log2(static_cast<double>(a.codes)));
  std::error_code error;
  fmt::print("{}: {} pictures of {} x {}, {} of them held out\n", a.out, count, a.size, a.size,
             unseen.size());
  fmt::print("  left out              {} with a short caption, {} that are too long or too wide\n",
             read->short_captions, read->long_shapes);
  fmt::print("  codes                 {} x {} of {}, entropy {:.2f} bits\n", set.coder->grid().side,
             set.coder->grid().side, a.codes, learn::code_entropy(set.codes, a.codes));
  fmt::print("  PSNR                  {:.2f} dB", psnr_of(set, read->pictures, seen));
  if (!unseen.empty())
    fmt::print(", held-out pictures {:.2f} dB", psnr_of(set, read->pictures, unseen));
  fmt::print("\n  captions              {} tokens; at most {} in a caption, {} have more than {}\n",
             set.words->vocabulary(), longest, cut, a.most);
  fmt::print("  bytes                 {} as RGB, {} as PNG, {:.0f} as codes; the file has {}\n",
             3 * a.size * a.size * count, read->png_bytes,
             static_cast<double>(count * codes) * bits / 8,
             std::filesystem::file_size(a.out, error));
  return exit_ok;
}

int info(const images_arguments& a) {
  const auto set = learn::load_picture_set(a.folder);
  if (!set) return fail(set.error());
  fmt::print("{}\n  pictures              {}, {} of them held out\n", a.folder,
             set->captions.size(), set->places(true).size());
  const auto& grid = set->coder->grid();
  fmt::print("  codes                 {} x {} of {}, patches of {} x {} pixels\n", grid.side,
             grid.side, grid.codes, grid.patch, grid.patch);
  fmt::print("  codebook              {}, {} values\n", set->coder->kind(),
             set->coder->values().size());
  fmt::print("  tokens                {}\n  content               {}\n", set->words->vocabulary(),
             set->content.hex());
  return exit_ok;
}

int show(const images_arguments& a) {
  const auto set = learn::load_picture_set(a.folder);
  if (!set) return fail(set.error());
  std::vector<learn::picture> found;
  for (std::size_t i = 0; i < set->captions.size() && found.size() < a.most; ++i)
    if (set->captions[i].find(a.search) != std::string::npos) {
      found.push_back(set->coder->decode(set->codes[i]));
      fmt::print("{}{}\n", set->captions[i], set->held_out[i] != 0 ? " (held out)" : "");
    }
  if (found.empty())
    return fail(fmt::format("images: no caption in '{}' has '{}'", a.folder, a.search));
  if (const auto done = learn::write_png(learn::contact_sheet(found, 8, 2), a.out); !done)
    return fail(done.error());
  return exit_ok;
}

} // namespace

void add_images(CLI::App& app, action& chosen) {
  auto a = std::make_shared<images_arguments>();
  auto* command = app.add_subcommand("images", "prepare pictures with captions for training");
  command->require_subcommand(1);
  const auto add = [&](const char* name, const char* what, int (*work)(const images_arguments&)) {
    auto* out = command->add_subcommand(name, what);
    out->callback([a, work, &chosen] { chosen = [a, work] { return work(*a); }; });
    return out;
  };
  const auto number = [](CLI::App* to, const char* name, std::uint64_t& into, const char* what,
                         std::uint64_t least, std::uint64_t most) {
    to->add_option(name, into, what)
        ->type_name("N")
        ->capture_default_str()
        ->check(CLI::Range(least, most));
  };
  const auto text = [](CLI::App* to, const char* name, std::string& into, const std::string& what,
                       const char* type) {
    return to->add_option(name, into, what)->type_name(type);
  };
  auto* prepares = add("prepare", "learn a codebook, and write codes and captions", prepare);
  text(prepares, "folder", a->folder, "the folder of the PNG files", "FOLDER")->required();
  text(prepares, "-o,--out", a->out, "the file to write", "FILE")->required();
  text(prepares, "--table", a->table,
       "a table of captions with tabs between its columns; without it NAME.txt beside NAME.png has "
       "the caption",
       "FILE");
  text(prepares, "--file", a->file_column, "the table's column of file names", "NAME")
      ->capture_default_str();
  text(prepares, "--caption", a->caption_column, "the table's column of captions", "NAME")
      ->capture_default_str();
  number(prepares, "--size", a->size, "pixels on a side; pictures are scaled to it", 2, 4096);
  number(prepares, "--patch", a->patch, "pixels on a side of the patch of a code", 1, 256);
  number(prepares, "--codes", a->codes, "entries of the codebook", 2, 65536);
  number(prepares, "--vocab", a->vocabulary, "tokens of the captions", 8, 1'000'000);
  std::string kinds, passes;
  std::vector<std::string> names;
  for (const auto& kind : learn::picture_coders().all()) {
    kinds += fmt::format("{}{} ({})", kinds.empty() ? "" : ", ", kind.name, kind.meaning);
    names.push_back(kind.name);
    passes += fmt::format("{}{} for {}", passes.empty() ? "" : ", ", kind.passes, kind.name);
  }
  text(prepares, "--codebook", a->codebook, "how codes are learnt: " + kinds, "KIND")
      ->capture_default_str()
      ->check(CLI::IsMember(names));
  prepares
      ->add_option(
          "--passes", a->passes,
          fmt::format("passes over the pictures that learn the codebook (default: {})", passes))
      ->type_name("N")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{10000}));
  prepares
      ->add_option("-j,--threads", a->threads,
                   "threads that learn a vq_vae, which is the same with any number (default: one "
                   "for each core)")
      ->type_name("N")
      ->check(CLI::Range(1u, 1024u));
  number(prepares, "--shortest", a->shortest, "bytes of a caption, at least", 1, 1000);
  number(prepares, "--seed", a->seed, "seed of the codebook and of the held-out pictures", 0,
         std::uint64_t{1} << 62);
  prepares->add_option("--aspect", a->aspect, "longer side by shorter side, at most")
      ->type_name("X")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1000.0));
  prepares
      ->add_option("--held-out", a->held_out,
                   "fraction of the captions 'A: B' that is never trained on; A and B stay in "
                   "other captions")
      ->type_name("P")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 0.5));

  auto* tells = add("info", "describe a prepared file", info);
  text(tells, "prepared", a->folder, "a file of shoal images prepare", "FILE")->required();

  auto* shows = add("show", "write pictures of a prepared file as PNG", show);
  text(shows, "prepared", a->folder, "a file of shoal images prepare", "FILE")->required();
  text(shows, "caption", a->search, "a part of the captions", "TEXT")->required();
  text(shows, "-o,--out", a->out, "the PNG to write", "FILE")->required();
  number(shows, "--most", a->most, "pictures, at most", 1, 1024);
}

} // namespace shoal::tools
