// The content of a prepared set of pictures, without its packing.
#include "kernels/learn/pictures/picture_set.hpp"
#include "tests/fuzz/targets.hpp"

#include <algorithm>

namespace shoal::fuzz {

void pictures(bytes input) {
  const auto read = learn::parse_picture_set(text_of(input), "any");
  if (!read)
    return must(read.error().starts_with("pictures: 'any' is damaged: "),
                "an error says which file");
  const auto& grid = read->coder->grid();
  must(grid.possible(), "a file has no larger grid");
  must(read->codes.size() == read->captions.size(), "a caption has its codes");
  for (const auto& codes : read->codes) must(codes.size() == grid.places(), "a place has its code");
  if (!read->codes.empty() && grid.pixels() <= 64) {
    const auto one = read->coder->decode(read->codes.front());
    must(one.rgb.size() == 3 * grid.pixels() * grid.pixels(), "a picture has its pixels");
    const auto codes = read->coder->encode(learn::white_picture(grid.pixels(), grid.pixels()));
    must(std::all_of(codes.begin(), codes.end(),
                     [&](learn::token_id code) {
                       return code >= 0 && static_cast<std::size_t>(code) < grid.codes;
                     }),
         "a code is in the codebook");
  }
  const auto again = learn::parse_picture_set(learn::text_of(*read), "again");
  must(again.ok() && again->codes == read->codes && again->captions == read->captions &&
           again->coder->values() == read->coder->values(),
       "a written set reads back equal");
}

} // namespace shoal::fuzz
