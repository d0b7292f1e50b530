#include "apiserver/write/committer.h"

#include "apiserver/resource/custom_kind.h"

#include <charconv>
#include <utility>

namespace spillway::apiserver {

namespace {

constexpr std::string_view kEvents = "/registry/events/";

api::Status store_failure(const Error& error) {
  if (error.code == ErrorCode::kTooManyRequests || error.code == ErrorCode::kServiceUnavailable ||
      error.code == ErrorCode::kTimeout) {
    return api::retry_status(error.code, error.message, 1);
  }
  return error;
}

}  // namespace

api::Json at_rest_of(const Resource& stored, api::Json document) {
  return stored.custom == nullptr ? std::move(document) : stored.custom->kind->at_rest(std::move(document));
}

/// The object in these stored bytes; errors are in upstream's words.
api::StatusResult<ObjectPtr> Committer::object_of(const Resource& resource, const std::string& key,
                                                  const store::Value& value, store::Revision revision) {
  const ResourceCache& cache = core_.cache.of(resource);
  if (ObjectPtr cached = cache.find(key); cached && cached->revision == revision) return cached;
  // The object was overwritten meanwhile: the answer shows the result of this write.
  Result<ObjectPtr> read = read_object(cache.resource(), key, value, revision);
  if (!read) return unreadable_status(resource.storage + key, revision, read.error().message);
  return *std::move(read);
}

/// An error if the stored object must not be overwritten. An object with unknown fields may still be deleted, as
/// nothing of it is kept.
api::StatusResult<void> Committer::may_write(const Resource& resource, const std::string& key) const {
  const ResourceCache& cache = core_.cache.of(resource);
  if (const Unreadable* bad = cache.find_unreadable(key)) {
    return unreadable_status(resource.storage + key, bad->revision, bad->cause);
  }
  const ObjectPtr object = cache.find(key);
  if (!object || object->unknown_fields.empty() || core_.storage.drop_unknown_fields) return {};
  return unknown_fields_status(resource.storage + key, object->unknown_fields);
}

/// The result of a write: the object that it stored, or the one that it conflicted with.
api::StatusResult<Commit> Committer::commit_of(const Resource& resource, const std::string& key,
                                               const store::WriteResult& result, const store::Value& written) {
  Commit commit{result.committed, nullptr};
  if (!result.committed && !result.current) return commit;
  auto object = result.committed ? object_of(resource, key, written, result.revision)
                                 : object_of(resource, key, result.current->value, result.current->mod_revision);
  if (!object) return object.error();
  commit.object = *std::move(object);
  return commit;
}

void Committer::put(const Resource& resource, std::string key, api::Json document, store::Revision expected,
                    Checks checks, Done done) {
  if (const auto may = may_write(resource, key); !may) return done(may.error());
  // The row may be stale: a custom kind's stored form follows its present definition.
  const Resource& stored = core_.cache.of(resource).resource();
  document = at_rest_of(stored, std::move(document));
  Extract meta = extract(stored, document);
  const bool frees = meta.deleting;
  auto value = std::make_shared<const std::string>(
      encode_stored(stored, document, core_.storage.media_type.value_or(StorageMediaType::kJson)));
  core_.cache.expect(value, std::move(meta), std::move(document), checks == Checks::kPassed);
  std::string store_key = resource.storage + key;
  const bool expires = resource.storage == kEvents && store_of(resource).expires_keys();
  const auto life = expires ? std::optional(core_.storage.event_ttl) : std::nullopt;
  write(resource, std::move(key), {std::move(store_key), std::move(value), expected, frees, life}, std::move(done));
}

void Committer::renew(Renewal renewal, Done done) {
  const Resource& resource = renewal.resource;
  const ObjectPtr& current = renewal.current;
  if (const auto may = may_write(resource, current->key); !may) return done(may.error());
  auto value = std::make_shared<const std::string>(std::move(renewal.bytes));
  core_.cache.expect_renewal(value, current, std::move(renewal.document));
  write(resource, current->key, {resource.storage + current->key, std::move(value), current->revision},
        std::move(done));
}

void Committer::write(const Resource& resource, std::string key, store::Write write, Done done) {
  store::Value value = write.value;
  store_of(resource).write(std::move(write), [this, &resource, key = std::move(key), value = std::move(value),
                                              done = std::move(done)](Result<store::WriteResult> result) mutable {
    core_.catch_up();
    core_.cache.forget(value);
    if (!result) return done(store_failure(result.error()));
    done(commit_of(resource, key, *result, value));
  });
}

void Committer::erase(const Resource& resource, std::string key, api::Json last, store::Revision expected, Done done) {
  std::string store_key = resource.storage + key;
  const bool shows = !last.is_null();
  Extract meta;
  std::string last_text;
  if (shows) {
    meta = extract(resource, last);
    last_text = to_stored_text(last);
    core_.cache.expect_deletion(store_key, last_text, meta);
  }
  store::Write write{store_key, nullptr, expected};
  store_of(resource).write(std::move(write), [this, &resource, key = std::move(key), store_key = std::move(store_key),
                                              shows, last_text = std::move(last_text), meta = std::move(meta),
                                              done = std::move(done)](Result<store::WriteResult> result) mutable {
    core_.catch_up();
    if (shows) core_.cache.forget_deletion(store_key);
    if (!result) return done(store_failure(result.error()));
    if (!result->committed) return done(commit_of(resource, key, *result, nullptr));
    Commit commit{true, nullptr};
    if (shows) {
      commit.object = make_object(std::move(key), last_text, result->revision, std::move(meta));
    } else if (result->current) {
      auto last = object_of(resource, key, result->current->value, result->current->mod_revision);
      if (last) commit.object = *std::move(last);
    }
    done(std::move(commit));
  });
}

ObjectPtr Committer::imagine(const Resource& resource, api::Json document) {
  document = at_rest_of(resource, std::move(document));
  auto object = std::make_shared<StoredObject>();
  object->ns = document.string_at({"metadata", "namespace"});
  object->name = document.string_at({"metadata", "name"});
  object->key = object_key(object->ns, object->name);
  const std::string_view version = document.string_at({"metadata", "resourceVersion"});
  std::uint64_t number = 0;
  std::from_chars(version.data(), version.data() + version.size(), number);
  object->revision = store::Revision(number);
  object->text = std::make_shared<const std::string>(api::to_text(document));
  object->meta = extract(resource, document);
  return object;
}

}  // namespace spillway::apiserver
