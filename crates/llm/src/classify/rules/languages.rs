//! Words of errors in other languages than English and simplified Chinese, which gateways and local servers translate.
//!
//! A translator chooses the order of words, so a rule is what the error is about and what is wrong with it, in any order.
//! The words of all languages stand in one list, with `|` between them. All are lower-case; those in Latin letters begin a
//! word.

use crate::ErrorClass::{self, Auth, ContextOverflow, Quota, RateLimit};

/// The window of a model.
const CONTEXT: &str = "\
    contexto|contexte|kontext|contesto|контекст|コンテキスト|コンテクスト|컨텍스트|콘텍스트|문맥|上下文|سياق|संदर्भ|\
    bağlam|kontekst|contextlengte|contextvenster|contextlimiet|ngữ cảnh|konteks";

/// What is sent to a model, and its tokens.
const INPUT: &str = "\
    context|prompt|input|token|entrada|conversa|entrée|jeton|invite|eingabe|unterhaltung|\
    richiesta|testo|промпт|токен|длина запроса|ввод|входн|プロンプト|入力|トークン|프롬프트|입력|토큰|대화|输入长度|输入内容|\
    輸入|提示词|提示詞|對話|المدخل|الإدخال|الموجه|الرموز|توكن|النص|प्रॉम्प्ट|इनपुट|टोकन|istem|girdi|\
    girdinin|jednost|wejści|invoer|gesprek|lời nhắc|đầu vào|câu lệnh|masukan|perintah";

/// More than is allowed.
const TOO_LONG: &str = "\
    exced|ultrapass|supera|sobrepas|demasiado long|demasiado larg|demasiado grand|muito long|\
    muito grand|longo demais|longa demais|dépass|excèd|trop long|trop grand|überschr|überstieg|\
    übersteig|zu lang|zu groß|troppo lung|troppo grand|eccede|превы|слишком длин|слишком больш|\
    超え|超過|長すぎ|大きすぎ|초과|넘었|넘어|너무 길|너무 긴|너무 깁|너무 큽|超出|超长|超長|过长|過長|太长|太長|تجاوز|طويل|से अधिक|\
    बहुत लंब|बहुत बड़|पार |aşıyor|aştı|aşıldı|aşan|aşmakta|çok uzun|çok büyük|przekr|zbyt dług|\
    za dług|zbyt duż|overschr|te lang|te groot|vượt|quá dài|quá lớn|melebihi|melampaui|\
    terlalu panjang|terlalu besar";

/// The most that is allowed.
const LIMIT: &str = "\
    límite|limite|limit|máxim|maxim|massim|лимит|предел|максимал|制限|上限|最大|제한|한도|최대|الحد|सीमा|\
    अधिकतम|sınır|azami|maksim|maksym|limiet|giới hạn|tối đa|batas";

/// Lengths that are not those of the whole input, as in `NOT_OF_THE_INPUT`.
const NOT_OF_THE_INPUT: &str = "\
    salida|saída|sortie|ausgabe|uscita|вывод|выход|出力|출력|输出|輸出|الإخراج|आउटपुट|çıktı|wyjści|\
    uitvoer|đầu ra|keluaran|imag|immagin|bild|изображ|画像|이미지|图片|圖片|صورة|छवि|görsel|resim|obraz|\
    afbeelding|hình ảnh|gambar|archivo|arquivo|ficheiro|fichier|datei|файл|ファイル|파일|文件|檔案|ملف|\
    फ़ाइल|dosya|plik|bestand|tệp|berkas|herramient|ferrament|outil|werkzeug|strument|инструмент|\
    ツール|도구|工具|parámetr|parâmetr|paramètr|parametr|параметр|パラメータ|매개변수|파라미터|参数|參數|पैरामीटर|\
    tham số";

/// A short time.
const SHORT_TIME: &str = "\
    por minuto|por segundo|por hora|par minute|par seconde|par heure|pro minute|pro sekunde|\
    pro stunde|al minuto|al secondo|в минуту|за минуту|в секунду|в час|1分|毎分|分あたり|分間|분당|초당|每分鐘|\
    每分钟|每秒|في الدقيقة|لكل دقيقة|प्रति मिनट|dakikada|dakika başına|saniyede|na minutę|na sekundę|\
    per minuut|per seconde|mỗi phút|một phút|per menit|per detik";

/// A long time, in which waiting does not help.
const LONG_TIME: &str = "\
    por día|por dia|diari|diári|por mes|por mês|mensual|mensal|par jour|quotidien|journali|\
    mensuel|pro tag|täglich|tageslimit|monatlich|pro monat|al giorno|giornalier|mensil|в день|\
    в сутки|дневн|суточн|в месяц|месячн|1日|日次|月間|하루|일일|월간|每天|每日|每月|يومي|شهري|प्रति दिन|दैनिक|\
    मासिक|günlük|aylık|dzienn|miesięczn|per dag|dagelijks|daglimiet|maandelijks|mỗi ngày|\
    hàng ngày|hằng ngày|hàng tháng|per hari|harian|bulanan";

const REQUESTS: &str = "\
    solicitud|peticion|solicitaç|requisiç|pedidos|requête|demandes|anfrage|anforderung|richiest|\
    запрос|リクエスト|要求|요청|请求|請求|الطلبات|طلبات|अनुरोध|istek|isteğ|żąda|zapyta|verzoek|aanvra|\
    yêu cầu|permintaan|tasa|taxa de|débit|ratenlimit|ratenbegrenzung|hız sınırı";

const TOO_MANY: &str = "\
    demasiad|muitas|muitos|excessiv|trop de|zu viele|zu häufig|tropp|слишком много|слишком част|\
    多すぎ|너무 많|너무 자주|过多|過多|頻繁|كثيرة|كثير جد|عدد كبير|बहुत अधिक|बहुत ज़्यादा|çok fazla|çok sık|\
    zbyt wiele|zbyt dużo|za dużo|te veel|quá nhiều|terlalu banyak";

const QUOTAS: &str = "\
    cuota|cota |kontingent|квот|クォータ|割り当て|할당량|配額|الحصة|कोटा|kota|quotum|hạn ngạch|kuota";

/// Keys, of which only those of an API count.
const KEYS: &str = "\
    clave|chave|clé|schlüssel|chiave|ключ|キー|키|密钥|密鑰|金鑰|مفتاح|कुंजी|anahtar|klucz|sleutel|khóa|\
    khoá|kunci";

const AUTHENTICATION: &str = "\
    autentica|autenticaç|authentific|authentifiz|anmeld|аутентифик|авториза|認証|認證|인증|认证|鉴权|\
    المصادقة|مصادقة|प्रमाणीकरण|kimlik doğrulama|uwierzytelni|authenticatie|xác thực|autentikasi|\
    otentikasi|token de acces|token de acess|jeton d'accès|zugriffstoken|token di accesso|\
    токен доступа|アクセストークン|액세스 토큰|erişim belirteci|token dostępu|toegangstoken|token akses";

const INVALID: &str = "\
    inválid|invalid|incorrect|incorret|no es válid|no válid|não é válid|ungültig|falsch|error|\
    erro |erreur|non è valid|non valid|errat|неверн|недейств|неправильн|некорректн|無効|正しくあり|不正|\
    유효하지|잘못|올바르지|无效|無效|错误|錯誤|غير صالح|غير صحيح|अमान्य|गलत|geçersiz|hatalı|yanlış|nieprawidłow|\
    nieważn|błędn|ongeldig|onjuist|không hợp lệ|không đúng|tidak valid|tidak sah|salah|falló|\
    fallo|fallid|falla|falh|échec|échou|fehlgeschlagen|fehler|fallit|ошибк|не удал|не пройд|失敗|\
    失败|エラー|실패|오류|فشل|विफल|başarısız|hatası|nie powiod|niepowodzen|mislukt|thất bại|\
    không thành công|gagal|expir|abgelaufen|scadut|истек|истёк|просроч|期限|만료|过期|過期|منتهي|انتهت|\
    समाप्त|süresi dol|wygas|verlopen|hết hạn|kedaluwarsa|kadaluarsa";

const MONEY: &str = "\
    saldo|crédit|credit|fondos|fundos|fonds|fondi|solde|guthaben|средств|баланс|кредит|残高|クレジット|\
    잔액|잔고|크레딧|余额|餘額|點數|رصيد|الرصيد|क्रेडिट|बैलेंस|शेष राशि|bakiye|kredi|środk|kredyt|tegoed|\
    krediet|số dư|tín dụng";

const LACKING: &str = "\
    insuficient|insuffisant|insufficiente|insufficienti|agotad|esgotad|sem saldo|sin saldo|\
    épuis|nicht ausreich|reicht nicht|nicht genügend|nicht genug|unzureichend|aufgebraucht|\
    esaurit|недостат|исчерпан|закончил|不足|足りません|なくなりました|부족|소진|غير كاف|لا يكفي|نفد|अपर्याप्त|\
    पर्याप्त नहीं|yetersiz|tüken|niewystarczając|brak|wyczerpa|za mało|onvoldoende|niet genoeg|\
    niet toereikend|không đủ|đã hết|tidak cukup|tidak mencukupi|habis";

/// Whether an account is said to be empty.
pub(super) fn says_account_is_empty(words: &str) -> bool {
    has(words, MONEY) && has(words, LACKING)
}

/// What an error says; `words` are lower-case.
pub(super) fn class(words: &str) -> Option<ErrorClass> {
    let exceeds = || has(words, TOO_LONG);
    let asks_too_often = || has(words, REQUESTS) && (has(words, TOO_MANY) || exceeds());
    let is_of_input = || has(words, INPUT) && !has(words, NOT_OF_THE_INPUT);
    if has(words, QUOTAS) && (exceeds() || has(words, LACKING)) {
        Some(Quota)
    } else if has(words, SHORT_TIME) && (exceeds() || has(words, LIMIT)) {
        Some(RateLimit)
    } else if has(words, CONTEXT) && (exceeds() || has(words, LIMIT)) {
        Some(ContextOverflow)
    } else if has(words, LONG_TIME) && (exceeds() || has(words, LIMIT)) {
        Some(Quota)
    } else if is_of_input() && exceeds() {
        Some(ContextOverflow)
    } else if asks_too_often() {
        Some(RateLimit)
    } else if (has(words, AUTHENTICATION) || has(words, KEYS) && words.contains("api"))
        && has(words, INVALID)
    {
        Some(Auth)
    } else {
        None
    }
}

/// Whether one of `known` is in the text, at the beginning of a word if it is in Latin letters.
fn has(words: &str, known: &str) -> bool {
    known.split('|').any(|known| {
        let is_latin = known.starts_with(|first: char| first < '\u{250}' || first == 'đ');
        words.match_indices(known).any(|(at, _)| {
            !is_latin
                || !words[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
        })
    })
}

#[cfg(test)]
mod tests;
