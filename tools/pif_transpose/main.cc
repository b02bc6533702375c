// pif-transpose SRC DST: transposes a matrix, whose rows are the records of a file.
#include <map>
#include <memory>

#include <CLI/CLI.hpp>

#include "pif/base/decimal.h"
#include "pif/base/limits.h"
#include "pif/tool/memory.h"
#include "pif/tool/threads.h"
#include "pif/tool/tool_main.h"
#include "transpose.h"

namespace {

using pif::matrix::BitOrder;

void add_shape_options(CLI::App& app, pif::transpose::ShapeOptions& wanted) {
  app.add_option("--columns", wanted.columns,
                 "elements of a row (default: what a transpose has noted, or the header of an image)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{pif::kRecordLengthMax} * 8).description(""))
      ->transform(pif::whole_number)
      ->type_name("N");
  app.add_option("--element-bits", wanted.element_bits,
                 "bits of an element: 1, 2, 4, 8, 16, 32 or 64 (default: what a transpose has "
                 "noted, 2 for a .bed file, else 1)")
      ->check(CLI::IsMember({1U, 2U, 4U, 8U, 16U, 32U, 64U}).description(""))
      ->transform(pif::whole_number)
      ->type_name("BITS");
  const std::map<std::string, BitOrder> orders = {{"msb", BitOrder::kMsb}, {"lsb", BitOrder::kLsb}};
  app.add_option("--bit-order", wanted.order,
                 "which bit of a byte is the first: msb (as in PBM and numpy.packbits; default) or lsb (as "
                 "in PLINK)")
      ->transform(CLI::CheckedTransformer(orders).description(""))
      ->type_name("msb|lsb");
  app.add_option("--rows", wanted.rows, "only these rows, from 0, half open")->type_name("A:B");
  app.add_option("--columns-range", wanted.columns_range, "only these columns, from 0, half open")->type_name("A:B");
}

void add_options(CLI::App& app, const std::shared_ptr<pif::transpose::TransposeOptions>& wanted) {
  app.add_option("SRC", wanted->source, "the matrix: a file of fixed records, one for each row")->required();
  app.add_option("DST", wanted->target, "its transpose; replaced when it is complete (may be SRC)")->required();
  add_shape_options(app, *wanted);
  std::map<std::string, pif::transpose::Algorithm> algorithms;
  for (const auto& [algorithm, name] : pif::transpose::kAlgorithms) algorithms.emplace(name, algorithm);
  app.add_option("--algorithm", wanted->algorithm,
                 "direct (default): one read, one exchange, one write; recursive: pass by pass in "
                 "scratch files, as in the thesis")
      ->transform(CLI::CheckedTransformer(algorithms).description(""))
      ->type_name("direct|recursive");
  pif::tool::add_memory_option(app, wanted->memory, "a larger matrix is read in stripes of columns");
  pif::tool::add_threads_option(app, wanted->threads);
  pif::tool::add_output_options(app, *wanted);
}

}  // namespace

int main(int argc, char** argv) {
  const auto wanted = std::make_shared<pif::transpose::TransposeOptions>();
  pif::tool::Tool tool;
  tool.name = "pif-transpose";
  tool.summary =
      "Transposes a matrix of bits or wider elements, whose rows are the records of a file, on all its LFSs at once.";
  tool.examples =
      "  pif-transpose --columns 4096 /matrix /transposed    rows of 4096 bits\n"
      "  pif-transpose /transposed /matrix                   and back: it knows its shape\n"
      "  pif-transpose --element-bits 32 --columns 1000 /floats /out\n"
      "  pif-transpose --columns 2504 /variants.bed /samples.bed   after pif put --header bed\n"
      "  pif-transpose /page.pbm /mirrored.pbm               after pif put --header pbm\n";
  tool.options = [wanted](CLI::App& app) { add_options(app, wanted); };
  tool.control = [wanted](pif::tool::Controller& controller) { return pif::transpose::control(controller, *wanted); };
  tool.work = pif::transpose::work;
  tool.explain = [wanted](pif::tool::Controller& controller) { return pif::transpose::explain(controller, *wanted); };
  return pif::tool::main(argc, argv, tool);
}
