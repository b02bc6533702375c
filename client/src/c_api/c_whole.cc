// Whole files, where they are, and the LFSs they are on, in C.
#include <algorithm>
#include <span>

#include "c_api/c_run.h"
#include "c_api/c_values.h"
#include "pif/client/bulk.h"

using namespace pif::c_api;
using pif::Client;
using pif::File;
using pif::Result;
using pif::Status;

namespace {

// All of them are counted, those that there is room for are copied.
uint64_t copy_out(std::span<const uint32_t> from, uint32_t* to, size_t count) {
  std::copy_n(from.begin(), std::min(count, from.size()), to);
  return from.size();
}

Result<uint64_t> put(Client& client, int fd, const char* path, const pif_create_options* options) {
  PIF_TRY_VALUE(const pif::CreateOptions chosen, options_of(options));
  PIF_TRY_VALUE(File file, client.create(path, chosen));
  PIF_TRY_VALUE(const pif::BulkCounts counts, pif::import_stream(file, fd));  // if not, it is aborted when it closes
  PIF_TRY(file.commit());
  return counts.bytes;
}

Result<uint64_t> get(Client& client, const char* path, int fd) {
  PIF_TRY_VALUE(File file, client.open(path));
  PIF_TRY_VALUE(const pif::BulkCounts counts, pif::export_stream(file, fd));
  return counts.bytes;
}

// `call` with the client of a connection: what it gives.
template <typename Call>
int64_t bytes_with_client(pif_connection* connection, Arguments arguments, Call call) noexcept {
  uint64_t bytes = 0;
  const int code = with_client(connection, arguments, [&](Client& client) -> Status {
    PIF_TRY_VALUE(bytes, call(client));
    return {};
  });
  return code == 0 ? static_cast<int64_t>(bytes) : code;
}

pif_node_info info_of(const pif::Node& node) {
  pif_node_info info{};
  info.id = node.id;
  info.name = node.name.c_str();
  info.state = node.state.c_str();
  info.root = node.root.c_str();
  info.bytes_total = node.bytes_total;
  info.bytes_free = node.bytes_free;
  info.bytes_stored = node.bytes_stored;
  info.components = node.components;
  info.silent_ms = node.silent_ms;
  return info;
}

}  // namespace

extern "C" {

int64_t pif_put(pif_connection* connection, int fd, const char* path, const pif_create_options* options) {
  return bytes_with_client(connection, {{"path", path}},
                           [&](Client& client) { return put(client, fd, path, options); });
}
int64_t pif_get(pif_connection* connection, const char* path, int fd) {
  return bytes_with_client(connection, {{"path", path}}, [&](Client& client) { return get(client, path, fd); });
}
int64_t pif_import(pif_file* file, int fd) {
  return with_file(file, {}, [&](File& open) -> Result<uint64_t> {
    PIF_TRY_VALUE(const pif::BulkCounts counts, pif::import_stream(open, fd));
    return counts.bytes;
  });
}
int64_t pif_export(pif_file* file, int fd) {
  return with_file(file, {}, [&](File& open) -> Result<uint64_t> {
    PIF_TRY_VALUE(const pif::BulkCounts counts, pif::export_stream(open, fd));
    return counts.bytes;
  });
}

int64_t pif_nodes(pif_file* file, uint32_t* nodes, size_t count) {
  return with_file(file, {{"nodes", nodes, count}},
                   [&](const File& open) -> Result<uint64_t> { return copy_out(open.nodes(), nodes, count); });
}
int64_t pif_bevies(pif_file* file, uint32_t* sizes, size_t count) {
  return with_file(file, {{"sizes", sizes, count}},
                   [&](const File& f) -> Result<uint64_t> { return copy_out(f.layout().bevies(), sizes, count); });
}
int pif_locate(pif_file* file, uint64_t record, pif_place* place) {
  return code_with_file(file, {{"place", place}}, [&](const File& open) -> Status {
    const pif::Cell cell = open.layout().locate(record);
    *place = {cell.lfs, open.nodes()[cell.lfs], cell.row};
    return {};
  });
}
int pif_attributes(pif_file* file, pif_attribute_function each, void* user) {
  return code_with_file(file, {{"each", each}}, [&](const File& open) -> Status {
    for (const auto& [name, value] : open.attributes()) {
      if (each(user, name.c_str(), value.c_str()) != 0) break;
    }
    return {};
  });
}

int pif_list_nodes(pif_connection* connection, pif_node_function each, void* user) {
  return with_client(connection, {{"each", each}}, [&](Client& client) -> Status {
    PIF_TRY_VALUE(const pif::SystemStatus status, client.status());
    for (const pif::Node& node : status.nodes) {
      const pif_node_info info = info_of(node);
      if (each(user, &info) != 0) break;
    }
    return {};
  });
}

}  // extern "C"
