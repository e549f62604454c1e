/* An FTS5 tokenizer for tests, as a loadable extension: unicode61, with every run of Chinese, Japanese
   or Korean characters cut into pairs that overlap. It stands for the extension that users build. */
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1
#include <stddef.h>

typedef int (*TokenCallback)(void *, int, const char *, int, int, int);

/* unicode61, which every instance of ours has one of. */
typedef struct {
  void *user_data;
  fts5_tokenizer methods;
} Inner;

typedef struct {
  Inner *inner;
  Fts5Tokenizer *instance;
} Tokenizer;

/* Where the pieces of a token go. */
typedef struct {
  void *context;
  TokenCallback callback;
} Target;

static const unsigned ranges[][2] = {
  {0x1100, 0x11FF}, {0x3040, 0x309F}, {0x30A0, 0x30FF}, {0x3130, 0x318F}, {0x31F0, 0x31FF}, {0x3400, 0x4DBF},
  {0x4E00, 0x9FFF}, {0xA960, 0xA97F}, {0xAC00, 0xD7A3}, {0xD7B0, 0xD7FF}, {0xF900, 0xFAFF}, {0x20000, 0x2FA1F},
};

static int is_cjk(unsigned point) {
  for (size_t at = 0; at < sizeof ranges / sizeof *ranges; at++) {
    if (point >= ranges[at][0] && point <= ranges[at][1]) return 1;
  }
  return 0;
}

/* Bytes of the character at `text`, its code point in `*point`. */
static int character(const unsigned char *text, int left, unsigned *point) {
  int size = *text < 0x80 ? 1 : *text < 0xE0 ? 2 : *text < 0xF0 ? 3 : 4;
  if (size > left) size = left;
  *point = size == 1 ? *text : *text & (0xFF >> (size + 1));
  for (int at = 1; at < size; at++) *point = *point << 6 | (text[at] & 0x3F);
  return size;
}

/* Emits one run: pairs of a CJK run, or the run as it is where it is another or of one character. */
static int emit(Target *target, int flags, const char *text, int from, int to, int cjk, int base, int exact, int whole) {
  unsigned point;
  int first = from, rc = SQLITE_OK;
  int second = first + character((const unsigned char *)text + first, to - first, &point);
  if (!cjk || second >= to) {
    return target->callback(target->context, flags, text + from, to - from, exact ? base + from : base,
                            exact ? base + to : whole);
  }
  while (second < to && rc == SQLITE_OK) {
    int end = second + character((const unsigned char *)text + second, to - second, &point);
    rc = target->callback(target->context, flags, text + first, end - first, exact ? base + first : base,
                          exact ? base + end : whole);
    first = second;
    second = end;
  }
  return rc;
}

/* Called by unicode61 for each of its tokens. Offsets are exact where folding kept the length. */
static int split(void *context, int flags, const char *text, int size, int start, int end) {
  int from = 0, at = 0, was = -1, rc = SQLITE_OK, exact = size == end - start;
  while (at < size && rc == SQLITE_OK) {
    unsigned point;
    int next = at + character((const unsigned char *)text + at, size - at, &point);
    int now = is_cjk(point);
    if (was >= 0 && now != was) {
      rc = emit(context, flags, text, from, at, was, start, exact, end);
      from = at;
    }
    was = now;
    at = next;
  }
  return rc == SQLITE_OK && size ? emit(context, flags, text, from, size, was, start, exact, end) : rc;
}

static int create(void *context, const char **arguments, int count, Fts5Tokenizer **made) {
  Tokenizer *tokenizer = sqlite3_malloc(sizeof *tokenizer);
  if (!tokenizer) return SQLITE_NOMEM;
  tokenizer->inner = context;
  int rc = tokenizer->inner->methods.xCreate(tokenizer->inner->user_data, arguments, count, &tokenizer->instance);
  if (rc != SQLITE_OK) {
    sqlite3_free(tokenizer);
    return rc;
  }
  *made = (Fts5Tokenizer *)tokenizer;
  return SQLITE_OK;
}

static void delete(Fts5Tokenizer *made) {
  Tokenizer *tokenizer = (Tokenizer *)made;
  tokenizer->inner->methods.xDelete(tokenizer->instance);
  sqlite3_free(tokenizer);
}

static int tokenize(Fts5Tokenizer *made, void *context, int why, const char *text, int size, TokenCallback callback) {
  Tokenizer *tokenizer = (Tokenizer *)made;
  Target target = {context, callback};
  return tokenizer->inner->methods.xTokenize(tokenizer->instance, &target, why, text, size, split);
}

static fts5_api *api_of(sqlite3 *database) {
  fts5_api *api = NULL;
  sqlite3_stmt *statement = NULL;
  if (sqlite3_prepare_v2(database, "SELECT fts5(?1)", -1, &statement, NULL) == SQLITE_OK) {
    sqlite3_bind_pointer(statement, 1, &api, "fts5_api_ptr", NULL);
    sqlite3_step(statement);
  }
  sqlite3_finalize(statement);
  return api;
}

int sqlite3_ftscjk_init(sqlite3 *database, char **error, const sqlite3_api_routines *routines) {
  SQLITE_EXTENSION_INIT2(routines);
  (void)error;
  fts5_api *api = api_of(database);
  Inner *inner = api ? sqlite3_malloc(sizeof *inner) : NULL;
  if (!inner) return SQLITE_ERROR;
  static fts5_tokenizer ours = {create, delete, tokenize};
  int rc = api->xFindTokenizer(api, "unicode61", &inner->user_data, &inner->methods);
  if (rc == SQLITE_OK) rc = api->xCreateTokenizer(api, "cjk_unicode61", inner, &ours, sqlite3_free);
  else sqlite3_free(inner);
  return rc;
}
