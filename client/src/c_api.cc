// The C interface: handles around Client and File, and errors as negative codes.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "c_handles.h"

using pif::Client;
using pif::Error;
using pif::File;
using pif::Result;
using pif::Status;

namespace {

int note(pif_errors& errors, const Error& error) {
  errors.code = static_cast<int>(error.code);
  errors.text = error.to_string();
  return -errors.code;
}
int outcome(pif_errors& errors, const Status& status) { return status ? 0 : note(errors, status.error()); }

std::span<std::byte> bytes_of(void* data, size_t size) { return {static_cast<std::byte*>(data), size}; }
std::span<const std::byte> bytes_of(const void* data, size_t size) { return {static_cast<const std::byte*>(data), size}; }

template <typename T>
int64_t count_or_code(pif_errors& errors, const Result<T>& result) {
  return result ? static_cast<int64_t>(*result) : note(errors, result.error());
}

Error not_connected() { return {pif::Code::kUnavailable, "not connected", {}}; }

// Runs `call` with the client, if there is one.
template <typename Call>
int with_client(pif_connection* connection, Call call) {
  if (!connection->client) return note(*connection->errors, not_connected());
  return outcome(*connection->errors, call(*connection->client));
}

pif::ConnectOptions options_of(const char* where, const pif_options* options) {
  pif::ConnectOptions out;
  if (where != nullptr) out.where = where;
  if (options == nullptr) return out;
  if (options->route != nullptr) out.route = options->route;
  out.data_path = static_cast<pif::DataPath>(options->data_path);
  if (options->timeout_ms != 0) out.timeout = std::chrono::milliseconds(options->timeout_ms);
  if (options->threads != 0) out.threads = options->threads;
  return out;
}

pif::CreateOptions options_of(const pif_create_options* options) {
  pif::CreateOptions out;
  if (options == nullptr) return out;
  switch (options->kind) {
    case PIF_VARIABLE:
      out.format = pif::Format::variable();
      break;
    case PIF_DELIMITED:
      out.format = pif::Format::delimited(options->delimiter);
      break;
    default:
      if (options->record_length != 0) out.format = pif::Format::fixed(options->record_length);
  }
  out.exclusive = options->exclusive != 0;
  out.width = options->width;
  if (options->nodes != nullptr) out.nodes.assign(options->nodes, options->nodes + options->node_count);
  out.bevy = options->bevy;
  if (options->mode != 0) out.mode = options->mode;
  return out;
}

pif_stat_info info_of(const pif::Entry& entry) {
  pif_stat_info info{};
  info.id = entry.id;
  info.records = entry.extent.records;
  info.bytes = entry.extent.bytes;
  info.modified_ns = entry.modified_ns;
  info.owner = entry.owner;
  info.group = entry.group;
  info.mode = entry.mode;
  info.is_folder = entry.kind == pif::EntryKind::kFolder;
  if (info.is_folder != 0) return info;
  info.record_length = entry.format.record_length;
  info.width = static_cast<uint32_t>(entry.nodes.size());
  info.kind = static_cast<pif_record_kind>(entry.format.kind);
  info.delimiter = entry.format.delimiter;
  return info;
}

uint64_t microseconds(pif::Duration duration) { return static_cast<uint64_t>(duration.count() / 1000); }

pif_file* keep(pif_connection* connection, Result<File> file) {
  if (!file) {
    note(*connection->errors, file.error());
    return nullptr;
  }
  return new (std::nothrow) pif_file{connection->errors, std::move(*file)};
}

}  // namespace

extern "C" {

pif_connection* pif_connect(const char* where, const pif_options* options) {
  auto* connection = new (std::nothrow) pif_connection;
  if (connection == nullptr) return nullptr;
  auto client = Client::connect(options_of(where, options));
  if (client) {
    connection->client = std::make_unique<Client>(std::move(*client));
  } else {
    note(*connection->errors, client.error());
  }
  return connection;
}

void pif_disconnect(pif_connection* connection) { delete connection; }
int pif_error(const pif_connection* connection) { return connection->errors->code; }
const char* pif_error_text(const pif_connection* connection) { return connection->errors->text.c_str(); }
const char* pif_code_name(int code) {
  return pif::code_name(static_cast<pif::Code>(code)).data();  // names are literals, and so end with a zero
}

int pif_stats(const pif_connection* connection, pif_stats_function each, void* user) {
  if (!connection->client) return 0;
  for (const pif::OperationStats& from : connection->client->stats()) {
    pif_operation_stats to{};
    to.name = from.name.c_str();
    to.count = from.count;
    to.errors = from.errors;
    to.bytes_received = from.bytes_in;
    to.bytes_sent = from.bytes_out;
    to.total_us = microseconds(from.total);
    to.p50_us = microseconds(from.latency.percentile(50));
    to.p99_us = microseconds(from.latency.percentile(99));
    to.max_us = microseconds(from.longest);
    if (each(user, &to) != 0) break;
  }
  return 0;
}

int pif_mkdir(pif_connection* connection, const char* path, int parents) {
  return with_client(connection, [&](Client& client) { return client.make_folder(path, parents != 0); });
}
int pif_mkdir_mode(pif_connection* connection, const char* path, int parents, uint32_t mode) {
  return with_client(connection, [&](Client& client) { return client.make_folder(path, parents != 0, mode); });
}
int pif_chmod(pif_connection* connection, const char* path, uint32_t mode) {
  pif::AttributeChange change;
  change.mode = mode;
  return with_client(connection, [&](Client& client) { return client.change_attributes(path, change); });
}
int pif_chown(pif_connection* connection, const char* path, uint32_t owner, uint32_t group) {
  pif::AttributeChange change;
  if (owner != PIF_KEEP) change.owner = owner;
  if (group != PIF_KEEP) change.group = group;
  return with_client(connection, [&](Client& client) { return client.change_attributes(path, change); });
}
int pif_remove(pif_connection* connection, const char* path, int recursive) {
  return with_client(connection, [&](Client& client) { return client.remove(path, recursive != 0); });
}
int pif_rename(pif_connection* connection, const char* from, const char* to, int no_replace) {
  return with_client(connection, [&](Client& client) { return client.rename(from, to, no_replace != 0); });
}
int pif_stat(pif_connection* connection, const char* path, pif_stat_info* info) {
  return with_client(connection, [&](Client& client) -> Status {
    PIF_TRY_VALUE(const pif::Entry entry, client.stat(path));
    *info = info_of(entry);
    return {};
  });
}
int pif_list(pif_connection* connection, const char* path, pif_list_function each, void* user) {
  return with_client(connection, [&](Client& client) -> Status {
    std::string after;
    while (true) {
      PIF_TRY_VALUE(const pif::ListPage page, client.list(path, after));
      for (const pif::Entry& entry : page.entries) {
        const pif_stat_info info = info_of(entry);
        if (each(user, entry.name.c_str(), &info) != 0) return {};
      }
      if (!page.more || page.entries.empty()) return {};
      after = page.entries.back().name;
    }
  });
}

pif_file* pif_create(pif_connection* connection, const char* path, const pif_create_options* options) {
  if (!connection->client) return note(*connection->errors, not_connected()), nullptr;
  return keep(connection, connection->client->create(path, options_of(options)));
}
pif_file* pif_open(pif_connection* connection, const char* path, enum pif_mode mode) {
  if (!connection->client) return note(*connection->errors, not_connected()), nullptr;
  const auto wanted = mode == PIF_WRITE  ? Client::Mode::kWrite
                      : mode == PIF_HOLD ? Client::Mode::kHold
                                         : Client::Mode::kRead;
  return keep(connection, connection->client->open(path, wanted));
}
int pif_commit(pif_file* file) { return outcome(*file->errors, file->file.commit()); }
int pif_abort(pif_file* file) { return outcome(*file->errors, file->file.abort()); }
int pif_close(pif_file* file) {
  const int code = outcome(*file->errors, file->file.close());
  delete file;
  return code;
}

uint64_t pif_tell(const pif_file* file) { return file->file.position(); }
int pif_seek(pif_file* file, uint64_t record) { return outcome(*file->errors, file->file.seek(record)); }
int pif_extent(pif_file* file, uint64_t* records, uint64_t* bytes) {
  const auto extent = file->file.extent();
  if (!extent) return note(*file->errors, extent.error());
  if (records != nullptr) *records = extent->records;
  if (bytes != nullptr) *bytes = extent->bytes;
  return 0;
}
uint32_t pif_record_length(const pif_file* file) { return file->file.format().record_length; }

int64_t pif_read(pif_file* file, void* out, size_t out_bytes, uint64_t count) {
  return count_or_code(*file->errors, file->file.read(bytes_of(out, out_bytes), count));
}
int64_t pif_read_at(pif_file* file, uint64_t first, void* out, size_t out_bytes, uint64_t count) {
  return count_or_code(*file->errors, file->file.read_at(first, bytes_of(out, out_bytes), count));
}
int pif_read_many(pif_file* file, pif_read_request* requests, size_t count) {
  std::vector<File::ReadRequest> all(count);
  for (size_t i = 0; i < count; ++i) {
    all[i] = {requests[i].first, requests[i].count, bytes_of(requests[i].out, requests[i].out_bytes), 0};
  }
  const int code = outcome(*file->errors, file->file.read_many(all));
  for (size_t i = 0; i < count; ++i) requests[i].done = code == 0 ? all[i].done : 0;
  return code;
}
int pif_write(pif_file* file, const void* in, size_t bytes) {
  return outcome(*file->errors, file->file.write(bytes_of(in, bytes)));
}
int pif_write_at(pif_file* file, uint64_t first, const void* in, size_t bytes) {
  return outcome(*file->errors, file->file.write_at(first, bytes_of(in, bytes)));
}
int64_t pif_append(pif_file* file, const void* in, size_t bytes) {
  return count_or_code(*file->errors, file->file.append(bytes_of(in, bytes)));
}

int64_t pif_read_batch(pif_file* file, void* out, size_t out_bytes, uint32_t* lengths, uint64_t count) {
  auto batch = file->file.read_batch_at(file->file.position(), count, out_bytes);
  if (!batch) return note(*file->errors, batch.error());
  if (batch->data.size() > out_bytes) {
    return note(*file->errors, {pif::Code::kTooLarge, "the next record needs " + std::to_string(batch->data.size()) + " bytes", {}});
  }
  if (!batch->data.empty()) std::memcpy(out, batch->data.data(), batch->data.size());
  std::copy(batch->lengths.begin(), batch->lengths.end(), lengths);
  const int code = outcome(*file->errors, file->file.seek(file->file.position() + batch->lengths.size()));
  return code != 0 ? code : static_cast<int64_t>(batch->lengths.size());
}
int pif_write_batch(pif_file* file, const void* in, size_t bytes, const uint32_t* lengths, uint64_t count) {
  return outcome(*file->errors, file->file.write_batch({lengths, count}, bytes_of(in, bytes)));
}
int64_t pif_append_batch(pif_file* file, const void* in, size_t bytes, const uint32_t* lengths, uint64_t count) {
  return count_or_code(*file->errors, file->file.append_batch({lengths, count}, bytes_of(in, bytes)));
}

int64_t pif_start_read(pif_file* file, uint64_t first, void* out, size_t out_bytes, uint64_t count) {
  return count_or_code(*file->errors, file->file.start_read(first, bytes_of(out, out_bytes), count));
}
int64_t pif_start_write(pif_file* file, uint64_t first, const void* in, size_t bytes) {
  return count_or_code(*file->errors, file->file.start_write(first, bytes_of(in, bytes)));
}
int64_t pif_wait(pif_file* file, int64_t operation) {
  return count_or_code(*file->errors, file->file.wait(static_cast<File::Operation>(operation)));
}
int pif_is_done(pif_file* file, int64_t operation) {
  return file->file.is_done(static_cast<File::Operation>(operation)) ? 1 : 0;
}

int64_t pif_pread(pif_file* file, void* out, size_t bytes, uint64_t offset) {
  return count_or_code(*file->errors, file->file.pread(bytes_of(out, bytes), offset));
}
int64_t pif_pwrite(pif_file* file, const void* in, size_t bytes, uint64_t offset) {
  return count_or_code(*file->errors, file->file.pwrite(bytes_of(in, bytes), offset));
}

}  // extern "C"
