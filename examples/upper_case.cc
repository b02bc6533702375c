// A copy-class tool: every record in capital letters. Each worker handles the component on its own LFS.
#include "pif/tool/copy_class.h"

namespace {

std::byte upper(std::byte c) { return c >= std::byte{'a'} && c <= std::byte{'z'} ? c ^ std::byte{0x20} : c; }

pif::Status upper_case(pif::tool::RowBatch& batch) {
  for (std::byte& c : batch.data) c = upper(c);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  return pif::tool::main(
      argc, argv,
      pif::tool::copy_class_tool("example-upper-case", "Copies a file with its ASCII letters turned into capitals.",
                                 upper_case, pif::tool::Calls::kAtOnce));
}
