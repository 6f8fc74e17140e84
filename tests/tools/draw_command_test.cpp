// `shoal images` and `shoal draw` as somebody meets them who has a folder of pictures.
#include "kernels/learn/pictures/png_file.hpp"
#include "tests/support/program.hpp"
#include "tests/support/reference_data.hpp"
#include "tests/support/skip.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>

namespace {

struct desk : shoal::scratch_folder {
  shoal::program_outcome run(const std::string& arguments) const {
    return shoal::run_program(path, arguments);
  }
  /// Squares of four colours with bars of four kinds, each with its caption.
  void paint() const {
    using namespace shoal::learn;
    std::filesystem::create_directory(path / "png");
    const char* colours[] = {"red", "green", "blue", "grey"};
    for (std::size_t colour = 0; colour < 4; ++colour)
      for (std::size_t kind = 0; kind < 4; ++kind) {
        auto one = white_picture(8, 8);
        for (std::size_t y = 0; y < 8; ++y)
          for (std::size_t x = 0; x < 8; ++x)
            for (std::size_t c = 0; c < 3; ++c)
              if ((kind == 0 && x < 4) || (kind == 1 && x >= 4) || (kind == 2 && y < 4) ||
                  (kind == 3 && y >= 4))
                one.rgb[3 * (y * 8 + x) + c] = c == colour ? 0.9F : 0.2F;
        const auto name = std::string(colours[colour]) + std::to_string(kind);
        REQUIRE(write_png(one, path / "png" / (name + ".png")).ok());
        const char* kinds[] = {"left", "right", "top", "bottom"};
        write("png/" + name + ".txt", std::string("bar: ") + colours[colour] + " " + kinds[kind]);
      }
  }
};

constexpr const char* small = "--size 8 --patch 2 --codes 5 --vocab 28 --passes 4 -o p.pictures";

} // namespace

TEST_CASE("images: a folder of pictures becomes codes, the same each time") {
  const desk here;
  here.paint();
  const auto first = here.run(std::string("images prepare png --held-out 0 ") + small);
  REQUIRE_MESSAGE(first.status == 0, first.text);
  CHECK(first.has("p.pictures: 16 pictures of 8 x 8, 0 of them held out"));
  const auto info = here.run("images info p.pictures");
  CHECK(info.has("16, 0 of them held out"));
  CHECK(info.has("4 x 4 of 5, patches of 2 x 2 pixels"));
  here.run(std::string("images prepare png --held-out 0 ") + small);
  CHECK(here.run("images info p.pictures").text == info.text);
  CHECK(here.run("images show p.pictures 'red' -o sheet.png").has("bar: red left"));
  CHECK(shoal::learn::read_png(here.path / "sheet.png").ok());
}

TEST_CASE("images: wrong input gets one line that says what to do") {
  const desk here;
  CHECK(
      here.run("images prepare nowhere -o x").has("error: captions: the folder 'nowhere' cannot"));
  here.write("t", "no pictures, but some text");
  CHECK(
      here.run("images info t").text ==
      "error: pictures: 't' is no prepared set of pictures; make one with shoal images prepare\n");
  here.paint();
  CHECK(here.run("images prepare png --vocab 9 --size 8 --codes 8 -o x")
            .has("choose another --vocab"));
  CHECK(here.run("images prepare png --codebook vq_gan -o x").has("not in {kmeans,vq_vae}"));
  CHECK(here.run("images prepare png --codebook vq_vae --size 8 --patch 3 --vocab 28 -o x").text ==
        "error: codebook: patches of 3 pixels do not divide pictures of 8\n");
}

TEST_CASE("images: a VQ-VAE learns the codes of a folder, the same with any number of threads") {
  const desk here;
  here.paint();
  const auto prepare = [&](const std::string& more) {
    const auto out = here.run("images prepare png --held-out 0 --codebook vq_vae " + more + small);
    REQUIRE_MESSAGE(out.status == 0, out.text);
    return out;
  };
  const auto first = prepare("--threads 1 ");
  CHECK(first.has("pass 4 of 4: "));
  CHECK(first.has("codes                 4 x 4 of 5, entropy "));
  CHECK(first.has("PSNR "));
  const auto info = here.run("images info p.pictures");
  CHECK(info.has("4 x 4 of 5, patches of 2 x 2 pixels"));
  CHECK(info.has("codebook              vq_vae, "));
  prepare("--threads 3 ");
  CHECK(here.run("images info p.pictures").text == info.text);
  prepare("--seed 2 ");
  CHECK(here.run("images info p.pictures").text != info.text);
  REQUIRE(here.run("images show p.pictures 'red left' -o sheet.png").status == 0);
  CHECK(shoal::learn::read_png(here.path / "sheet.png").ok());
}

#if SHOAL_WITH_LEARN

namespace {

const char* const scenario =
    "seed: 3\n"
    "stop_time: 1h\n"
    "devices: {a: {samples_per_second: 50}}\n"
    "peers: {a: {count: 2, up: 20Mbit, down: 20Mbit, device: a}}\n"
    "data: {files: [p.pictures]}\n"
    "workload: {kind: dalle, layers: 5, heads: 2, dim: 32, text_length: 8, vocabulary: 28, "
    "codes: 5, side: 4, show: ['bar: red left', 'bar: blue top']}\n"
    "training: {target_batch: 16, micro_batch: 8, epochs: 60, checkpoint_every: 30, optimizer: "
    "{kind: adamw, learning_rate: 0.01, warmup_steps: 10}}\n"
    "record: {events: none}\n";

/// The mean of a channel over the left half of a picture's inner part, minus that over the right.
double left_of_right(const shoal::learn::picture& sheet, std::size_t channel) {
  double out = 0;
  for (std::size_t y = 0; y < sheet.height; ++y)
    for (std::size_t x = 0; x < sheet.width; ++x)
      out += (2 * x < sheet.width ? 1.0 : -1.0) *
             static_cast<double>(sheet.rgb[3 * (y * sheet.width + x) + channel]);
  return out / static_cast<double>(sheet.width * sheet.height);
}

} // namespace

TEST_CASE("draw: two peers learn bars and what they draw has the colour and side of its caption") {
  const desk here;
  here.paint();
  here.write("s.yaml", scenario);
  REQUIRE(here.run(std::string("images prepare png --held-out 0 ") + small).status == 0);
  const auto run = here.run("run s.yaml --out run --no-baseline");
  REQUIRE_MESSAGE(run.status == 0, run.text);
  const auto drawn = [&](const std::string& caption, const std::string& more = {}) {
    const auto out = here.run("draw run '" + caption + "' --count 1 --best 1 -o d.png " + more);
    REQUIRE_MESSAGE(out.status == 0, out.text);
    auto sheet = shoal::learn::read_png(here.path / "d.png");
    REQUIRE(sheet.ok());
    return *sheet;
  };
  // Bright in one channel means dark in the others, on white.
  const auto left = drawn("bar: red left", "--temperature 0");
  const auto right = drawn("bar: green right", "--temperature 0");
  CHECK(left_of_right(left, 1) < -0.1);
  CHECK(left_of_right(left, 0) > left_of_right(left, 1) + 0.1);
  CHECK(left_of_right(right, 0) > 0.1);
  CHECK(drawn("bar: red left").rgb == drawn("bar: red left").rgb);

  const auto strip = shoal::learn::read_png(here.path / "run/checkpoints/epoch-30.png");
  REQUIRE(strip.ok());
  CHECK(strip->width == 8 + 4);
  CHECK(strip->height == 2 * 10 + 2);

  const auto best = here.run("draw run 'bar: blue top' 'bar: red top' --count 6 --best 2 -o b.png");
  CHECK_MESSAGE(best.has("b.png: 2 of 6 pictures for each of 2 captions, a row each"), best.text);
  const auto of_checkpoint =
      here.run("draw run/checkpoints/epoch-30.ckpt 'bar: red left' --count 1 --best 1 -o c.png");
  CHECK_MESSAGE(of_checkpoint.status == 0, of_checkpoint.text);
  const auto scored = here.run("draw run --score --among 4 --asked 3 --count 2 --passes 20");
  REQUIRE_MESSAGE(scored.status == 0, scored.text);
  for (const char* row :
       {"16 pictures of training", "captions of others", "among 4 comes first, for 3 captions",
        "in its pixels, for 3 captions", "to the best of 2"})
    CHECK_MESSAGE(scored.has(row), scored.text);
  CHECK(here.run("draw run --score --among 4 --asked 3 --count 2 --passes 20 -j 3").text ==
        scored.text);

  const auto unknown = here.run("draw run 'flying bar' --count 1 --best 1 -o u.png");
  CHECK_MESSAGE(unknown.has("note: no caption in training has 'flying'"), unknown.text);
  CHECK(here.run("draw run '' -o u.png").has("error: draw: a caption is empty"));
  CHECK(here.run("draw run red --count 2 --best 3 -o u.png")
            .has("error: draw: --best 3 is more than --count 2"));
  CHECK(here.run("draw run").has("error: draw: give a caption in quotes, or --score"));
  CHECK(here.run("draw nothing red").text == "error: 'nothing' does not exist\n");
  CHECK(here.run("draw run red --pictures s.yaml").has("is no prepared set of pictures"));
  REQUIRE(here.run(std::string("images prepare png --held-out 0 --seed 2 ") + small).status == 0);
  CHECK(here.run("draw run red").has("are not those that the model was trained with"));
  std::filesystem::remove(here.path / "p.pictures");
  CHECK(here.run("draw run red").has("; --pictures FILE names another file"));
}

TEST_CASE("draw: a model of the codes of a VQ-VAE draws through its decoder") {
  const desk here;
  here.paint();
  here.write("s.yaml", scenario);
  const auto prepared = here.run("images prepare png --held-out 0 --codebook vq_vae --size 8 "
                                 "--patch 2 --codes 5 --vocab 28 --passes 40 -o p.pictures");
  REQUIRE_MESSAGE(prepared.status == 0, prepared.text);
  const auto run = here.run("run s.yaml --out run --no-baseline");
  REQUIRE_MESSAGE(run.status == 0, run.text);
  const auto drawn =
      here.run("draw run 'bar: red left' --count 1 --best 1 --temperature 0 -o d.png");
  REQUIRE_MESSAGE(drawn.status == 0, drawn.text);
  const auto sheet = shoal::learn::read_png(here.path / "d.png");
  REQUIRE(sheet.ok());
  CHECK(left_of_right(*sheet, 1) < -0.1);
  CHECK(left_of_right(*sheet, 0) > left_of_right(*sheet, 1) + 0.1);
  const auto strip = shoal::learn::read_png(here.path / "run/checkpoints/epoch-30.png");
  REQUIRE(strip.ok());
  CHECK(strip->height == 2 * 10 + 2);
  const auto scored = here.run("draw run --score --among 4 --asked 3 --count 2 --passes 20");
  REQUIRE_MESSAGE(scored.status == 0, scored.text);
  CHECK_MESSAGE(scored.has("in its pixels, for 3 captions"), scored.text);
  // A file whose decoder is another one is not that of the run.
  REQUIRE(
      here.run(std::string("images prepare png --held-out 0 --codebook vq_vae ") + small).status ==
      0);
  CHECK(here.run("draw run red").has("are not those that the model was trained with"));
}

TEST_CASE("draw: the swarm of scenarios/ttt begins to learn emoji") {
  SHOAL_NIGHTLY();
  SHOAL_NEEDS_DATA(table, "emoji_noto/captions.tsv");
  const desk here;
  const auto repository = std::filesystem::current_path();
  const auto prepared =
      here.run(fmt::format("images prepare '{}' --table '{}' --caption name_en -o emoji.pictures",
                           (table.parent_path() / "png32").string(), table.string()));
  REQUIRE_MESSAGE(prepared.status == 0, prepared.text);
  const auto run = here.run(fmt::format(
      "run '{}' --set 'data.files=[{}]' --set training.epochs=12 --no-baseline --json --out run",
      (repository / "scenarios/ttt/emoji.yaml").string(), (here.path / "emoji.pictures").string()));
  REQUIRE_MESSAGE(run.status == 0, run.text);
  const auto summary = nlohmann::json::parse(std::ifstream(here.path / "run" / "summary.json"));
  CHECK(summary["loss"]["final"].get<double>() < summary["loss"]["first"].get<double>() - 0.3);
}

#endif
