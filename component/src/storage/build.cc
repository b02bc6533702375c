#include "pif/component/build.h"

#include "pif/base/build_id.h"

namespace pif::component {
namespace {

long read_at(void* program, std::uint64_t at, void* into, std::size_t bytes) {
  const auto got = static_cast<File*>(program)->read(at, std::span(static_cast<std::byte*>(into), bytes));
  return got ? static_cast<long>(*got) : -1;
}

}  // namespace

std::string build_of(File& program) {
  std::string id(kPifBuildIdBytesMax, '\0');
  id.resize(pif_build_id(&read_at, &program, reinterpret_cast<unsigned char*>(id.data())));
  return id;
}

}  // namespace pif::component
