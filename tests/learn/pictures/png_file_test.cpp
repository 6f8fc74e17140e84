// kernels/learn/pictures/png_file and caption_table.
#include "kernels/learn/pictures/caption_table.hpp"
#include "kernels/learn/pictures/png_file.hpp"
#include "tests/support/scratch_folder.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

using namespace shoal;
using namespace shoal::learn;

TEST_CASE("a picture survives PNG to half a step of 255") {
  const scratch_folder here;
  auto some = white_picture(5, 3);
  for (std::size_t i = 0; i < some.rgb.size(); ++i)
    some.rgb[i] = static_cast<float>(i) / static_cast<float>(some.rgb.size());
  REQUIRE(write_png(some, here.path / "a.png").ok());
  const auto again = read_png(here.path / "a.png");
  REQUIRE(again.ok());
  CHECK(again->width == 5);
  for (std::size_t i = 0; i < some.rgb.size(); ++i)
    CHECK(std::abs(again->rgb[i] - some.rgb[i]) < 0.0021F);
}

TEST_CASE("files that are no pictures and folders without captions are refused") {
  const scratch_folder here;
  here.write("b.png", "no picture");
  CHECK(read_png(here.path / "b.png").error().find("cannot be read as PNG") != std::string::npos);
  CHECK(read_caption_folder(here.path).error().find(
            "it should hold the caption of the picture of that name") != std::string::npos);
  here.write("b.txt", "a red heart\nmore");
  const auto files = read_caption_folder(here.path);
  REQUIRE(files.ok());
  CHECK(files->at(0).caption == "a red heart");
}

TEST_CASE("a table gives files and captions by the names of its columns") {
  const scratch_folder here;
  here.write("t.tsv",
             "name\tgroup\tfile\r\nred heart\tx\ta.png\r\n\ty\tb.png\r\nbat\tz\tc.png\r\n");
  const auto files = read_caption_table(here.path / "t.tsv", "/p", "file", "name");
  REQUIRE(files.ok());
  REQUIRE(files->size() == 2);
  CHECK(files->at(0).caption == "red heart");
  CHECK(files->at(1).path == "/p/c.png");
  const auto wrong = read_caption_table(here.path / "t.tsv", "/p", "file", "title");
  CHECK(wrong.error() == "captions: '" + (here.path / "t.tsv").string() +
                             "' has no column 'title'; it has name, group, file");
  here.write("u.tsv", "file\tcaption\na.png\n");
  CHECK(
      read_caption_table(here.path / "u.tsv", "/p", "file", "caption").error().find("line 2 of") !=
      std::string::npos);
}
