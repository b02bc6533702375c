// pif-transpose SRC DST: transposes a matrix, whose rows are the records of a file.
#include <map>
#include <memory>

#include <CLI/CLI.hpp>

#include "pif/base/decimal.h"
#include "pif/base/limits.h"
#include "pif/tool/memory.h"
#include "pif/tool/tool_main.h"
#include "transpose.h"

namespace {

using pif::matrix::BitOrder;

void add_shape_options(CLI::App& app, pif::transpose::ShapeWish& wish) {
  app.add_option("--columns", wish.columns, "elements of a row (default: what a transpose has noted, or the header of an image)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{pif::kRecordLengthMax} * 8).description(""))->transform(pif::decimal)
      ->type_name("N");
  app.add_option("--element-bits", wish.element_bits, "bits of an element: 1, 2, 4, 8, 16, 32 or 64 (default: what a transpose has "
                                                      "noted, 2 for a .bed file, else 1)")
      ->check(CLI::IsMember({1U, 2U, 4U, 8U, 16U, 32U, 64U}).description(""))->transform(pif::decimal)->type_name("BITS");
  const std::map<std::string, BitOrder> orders = {{"msb", BitOrder::kMsb}, {"lsb", BitOrder::kLsb}};
  app.add_option("--bit-order", wish.order, "which bit of a byte is the first: msb (as in PBM and numpy.packbits; default) or lsb (as "
                                            "in PLINK)")
      ->transform(CLI::CheckedTransformer(orders).description(""))->type_name("msb|lsb");
  app.add_option("--rows", wish.rows, "only these rows, from 0, half open")->type_name("A:B");
  app.add_option("--columns-range", wish.columns_range, "only these columns, from 0, half open")->type_name("A:B");
}

void add_options(CLI::App& app, const std::shared_ptr<pif::transpose::Wish>& wish) {
  app.add_option("SRC", wish->source, "the matrix: a file of fixed records, one for each row")->required();
  app.add_option("DST", wish->target, "its transpose; replaced when it is complete (may be SRC)")->required();
  add_shape_options(app, *wish);
  std::map<std::string, pif::transpose::Algorithm> algorithms;
  for (const auto& [algorithm, name] : pif::transpose::kAlgorithms) algorithms.emplace(name, algorithm);
  app.add_option("--algorithm", wish->algorithm, "direct (default): one read, one exchange, one write; recursive: pass by pass in "
                                                 "scratch files, as in the thesis")
      ->transform(CLI::CheckedTransformer(algorithms).description(""))->type_name("direct|recursive");
  pif::tool::add_memory_option(app, wish->memory, "a larger matrix is read in stripes of columns");
  pif::tool::add_target_options(app, *wish);
}

}  // namespace

int main(int argc, char** argv) {
  const auto wish = std::make_shared<pif::transpose::Wish>();
  pif::tool::Tool tool;
  tool.name = "pif-transpose";
  tool.summary = "Transposes a matrix of bits or wider elements, whose rows are the records of a file, on all its LFSs at once.";
  tool.examples =
      "  pif-transpose --columns 4096 /matrix /transposed    rows of 4096 bits\n"
      "  pif-transpose /transposed /matrix                   and back: it knows its shape\n"
      "  pif-transpose --element-bits 32 --columns 1000 /floats /out\n"
      "  pif-transpose --columns 2504 /variants.bed /samples.bed   after pif put --header bed\n"
      "  pif-transpose /page.pbm /mirrored.pbm               after pif put --header pbm\n";
  tool.options = [wish](CLI::App& app) { add_options(app, wish); };
  tool.control = [wish](pif::tool::Controller& controller) { return pif::transpose::control(controller, *wish); };
  tool.work = pif::transpose::work;
  tool.explain = [wish](pif::tool::Controller& controller) { return pif::transpose::explain(controller, *wish); };
  return pif::tool::main(argc, argv, tool);
}
