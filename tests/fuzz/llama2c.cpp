// Models of llama2.c: seven sizes, and as many values as the input asks for.
#include "kernels/learn/formats/llama2c.hpp"

#include "tests/fuzz/targets.hpp"

#include <sstream>
#include <string>

namespace shoal::fuzz {

void llama2c(bytes input) {
  front from(input);
  const auto how = from.byte();
  std::string file(text_of(from.rest()));
  // Small sizes, of which the length of the file follows, are reached by half of the inputs.
  if (how < 128 && file.size() >= 28) {
    for (std::size_t i = 0; i < 28; ++i)
      if (i % 4 != 0) file[i] = 0;
    const auto size = [&](std::size_t i) {
      return std::size_t{static_cast<unsigned char>(file[4 * i])};
    };
    for (std::size_t i = 0; i < 7; ++i) file[4 * i] = static_cast<char>(size(i) % 17);
    const learn::llama_shape shape{
        static_cast<std::int64_t>(size(0)), static_cast<std::int64_t>(size(1)),
        static_cast<std::int64_t>(size(2)), static_cast<std::int64_t>(size(3)),
        static_cast<std::int64_t>(size(4)), static_cast<std::int64_t>(size(5)),
        static_cast<std::int64_t>(size(6))};
    if (shape.heads > 0) {
      const auto tables = size(6) * (size(0) / size(3) / 2) * 2;
      file.resize(28 + 4 * (learn::parameter_count(shape) + tables));
    }
  }
  std::istringstream in(file);
  const auto read = learn::read_llama2c(in, file.size(), "any");
  if (!read)
    return must(read.error().starts_with("llama2.c model: 'any' "), "an error says which file");
  std::uint64_t values = 0;
  for (const auto& tensor : read->tensors) {
    std::uint64_t elements = 1;
    for (const auto extent : tensor.shape) elements *= static_cast<std::uint64_t>(extent);
    must(tensor.values.size() == elements && elements > 0, "a tensor fills its shape");
    values += elements;
  }
  must(values == parameter_count(read->shape), "all parameters are there");
  must(values * 4 < file.size(), "nothing is there that was not in the file");
}

} // namespace shoal::fuzz
