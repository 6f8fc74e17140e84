// How fast a tokenizer encodes the lines of a text, on one thread. Each empty line of standard
// input starts a pass and is answered by its seconds and tokens, so that another program can take
// turns. usage: tokenizer_speed TOKENIZER FILE
#include "kernels/learn/formats/whole_file.hpp"
#include "kernels/learn/tokenizer/load_tokenizer.hpp"

#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>

int main(int argc, char** argv) {
  using namespace shoal::learn;
  if (argc != 3) return std::fputs("usage: tokenizer_speed TOKENIZER FILE\n", stderr), 2;
  const auto codec = load_tokenizer(argv[1]);
  if (!codec) return std::fprintf(stderr, "%s\n", codec.error().c_str()), 1;
  const auto text = read_whole_file(argv[2], std::uint64_t{1} << 32, "text");
  if (!text) return std::fprintf(stderr, "%s\n", text.error().c_str()), 1;
  std::printf("%zu bytes\n", text->size());
  std::fflush(stdout);
  for (std::string go; std::getline(std::cin, go);) {
    const auto begin = std::chrono::steady_clock::now();
    std::size_t tokens = 0;
    std::string_view rest = *text;
    while (!rest.empty()) {
      const auto end = std::min(rest.find('\n'), rest.size());
      tokens += codec->codec->encode(rest.substr(0, end)).size();
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::printf("%.6f %zu\n", took.count(), tokens);
    std::fflush(stdout);
  }
}
