// Whole files, where they are, and the LFSs they are on, in C.
#include <algorithm>
#include <atomic>
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

// A transfer that ends where the function of pif_on_wait says so.
class Stoppable {
 public:
  explicit Stoppable(const pif_errors& errors) {
    if (!errors.wants_to_stop) return;
    options_.cancel = &is_cancelled_;
    options_.progress = [this, &errors](const pif::BulkCounts&, uint64_t) {
      if (errors.wants_to_stop()) is_cancelled_ = true;
    };
  }
  Stoppable(const Stoppable&) = delete;
  Stoppable& operator=(const Stoppable&) = delete;
  const pif::BulkOptions& options() const { return options_; }

 private:
  std::atomic<bool> is_cancelled_{false};
  pif::BulkOptions options_;
};

Result<uint64_t> import(File& file, int fd, const pif_errors& errors) {
  const Stoppable stoppable(errors);
  PIF_TRY_VALUE(const pif::BulkCounts counts, pif::import_stream(file, fd, stoppable.options()));
  return counts.bytes;
}

Result<uint64_t> export_to(File& file, int fd, const pif_errors& errors) {
  const Stoppable stoppable(errors);
  PIF_TRY_VALUE(const pif::BulkCounts counts, pif::export_stream(file, fd, stoppable.options()));
  return counts.bytes;
}

Result<uint64_t> put(pif_connection& connection, int fd, const char* path, const pif_create_options* options) {
  PIF_TRY_VALUE(const pif::CreateOptions chosen, options_of(options));
  PIF_TRY_VALUE(File file, connection.client->create(path, chosen));
  PIF_TRY_VALUE(const uint64_t bytes, import(file, fd, *connection.errors));  // if not, it is aborted when it closes
  PIF_TRY(file.commit());
  return bytes;
}

Result<uint64_t> get(pif_connection& connection, const char* path, int fd) {
  PIF_TRY_VALUE(File file, connection.client->open(path));
  return export_to(file, fd, *connection.errors);
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
  info.host = node.host.c_str();
  return info;
}

uint32_t count_up(const std::vector<pif::Node>& nodes) {
  return static_cast<uint32_t>(
      std::count_if(nodes.begin(), nodes.end(), [](auto& node) { return node.state == "up"; }));
}

}  // namespace

extern "C" {

int64_t pif_put(pif_connection* connection, int fd, const char* path, const pif_create_options* options) {
  return count_with_client(connection, {{"path", path}}, [&](Client&) { return put(*connection, fd, path, options); });
}
int64_t pif_get(pif_connection* connection, const char* path, int fd) {
  return count_with_client(connection, {{"path", path}}, [&](Client&) { return get(*connection, path, fd); });
}
int64_t pif_import(pif_file* file, int fd) {
  return with_file(file, {}, [&](File& open) { return import(open, fd, *file->errors); });
}
int64_t pif_export(pif_file* file, int fd) {
  return with_file(file, {}, [&](File& open) { return export_to(open, fd, *file->errors); });
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
  return code_with_file(file, {{"each", each}},
                        [&](const File& open) { return tell_attributes(open.attributes(), each, user); });
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

int pif_status(pif_connection* connection, uint32_t wait_up, pif_status_info* info) {
  return with_client(connection, {{"info", info}}, [&](Client& client) -> Status {
    PIF_TRY_VALUE(connection->status, client.status(wait_up));
    const pif::SystemStatus& now = connection->status;
    *info = {now.cluster.c_str(), now.refused.c_str(), now.files,    now.folders,
             now.pending,         now.doomed,          now.sessions, static_cast<uint32_t>(now.nodes.size()),
             count_up(now.nodes)};
    return {};
  });
}

}  // extern "C"
