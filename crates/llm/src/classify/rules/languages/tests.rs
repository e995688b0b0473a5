use super::super::decide;
use crate::ErrorClass::{self, Auth, Billing, ContextOverflow, Quota, RateLimit, Timeout, Unknown};

/// Sentences of hosts in other words; those of one class stand together. No recorded body is among them.
const TRANSLATED: &[(ErrorClass, &[&str])] = &[
    (
        ContextOverflow,
        &[
            "O prompt excede o limite de contexto",
            "A entrada é muito longa para este modelo",
            "O número de tokens ultrapassou o máximo permitido de 8192",
            "El prompt supera la longitud máxima del contexto",
            "La longitud máxima de contexto de este modelo es de 8192 tokens, pero solicitó 9000",
            "La conversación es demasiado larga",
            "Límite de contexto alcanzado",
            "Le prompt dépasse la longueur maximale du contexte",
            "L'entrée est trop longue",
            "La fenêtre de contexte est limitée à 8192 jetons",
            "Die Eingabe ist zu lang",
            "Die maximale Kontextlänge wurde überschritten",
            "Der Prompt überschreitet das Kontextfenster von 8192 Token",
            "Il prompt supera il limite di contesto",
            "L'input è troppo lungo per il modello",
            "Превышена максимальная длина контекста",
            "Промпт слишком длинный",
            "Количество токенов превышает допустимое значение 8192",
            "プロンプトがコンテキストの上限を超えています",
            "入力が長すぎます",
            "トークン数が上限を超過しました",
            "컨텍스트 길이를 초과했습니다",
            "프롬프트가 너무 깁니다",
            "입력 토큰 수가 최대치를 초과했습니다",
            "超出模型的上下文长度限制",
            "輸入過長，超過最大長度",
            "提示词太长",
            "تجاوز طول السياق الحد الأقصى",
            "النص المدخل طويل جدا",
            "प्रॉम्प्ट संदर्भ सीमा से अधिक है",
            "इनपुट बहुत लंबा है",
            "İstem bağlam sınırını aşıyor",
            "Girdi çok uzun",
            "Prompt przekracza limit kontekstu",
            "Dane wejściowe są zbyt długie",
            "De prompt overschrijdt de contextlimiet",
            "De invoer is te lang",
            "Lời nhắc vượt quá giới hạn ngữ cảnh",
            "Đầu vào quá dài",
            "Prompt melebihi batas konteks",
            "Masukan terlalu panjang",
        ],
    ),
    (
        Billing,
        &[
            "Saldo insuficiente",
            "Créditos insuficientes, recarregue sua conta",
            "No hay fondos suficientes: fondos insuficientes",
            "Votre solde est insuffisant",
            "Vos crédits sont épuisés",
            "Ihr Guthaben reicht nicht aus",
            "Nicht genügend Guthaben",
            "Credito insufficiente",
            "Недостаточно средств на балансе",
            "残高が不足しています",
            "クレジットが不足しています",
            "잔액이 부족합니다",
            "크레딧이 모두 소진되었습니다",
            "余额不足",
            "帳戶餘額不足",
            "الرصيد غير كافٍ",
            "अपर्याप्त क्रेडिट",
            "Yetersiz bakiye",
            "Brak środków na koncie",
            "Onvoldoende tegoed",
            "Số dư không đủ",
            "Saldo tidak mencukupi",
        ],
    ),
    (
        RateLimit,
        &[
            "Muitas solicitações, tente novamente mais tarde",
            "Limite de tokens por minuto excedido",
            "Demasiadas solicitudes",
            "Has superado el límite de tokens de entrada por minuto",
            "Trop de requêtes",
            "Limite de jetons par minute dépassée",
            "Zu viele Anfragen",
            "Ratenlimit überschritten",
            "Troppe richieste",
            "Слишком много запросов",
            "Превышен лимит запросов",
            "リクエストが多すぎます",
            "1分あたりのトークン数の上限を超えました",
            "요청이 너무 많습니다",
            "분당 토큰 한도를 초과했습니다",
            "请求过多，请稍后再试",
            "عدد كبير جدًا من الطلبات",
            "बहुत अधिक अनुरोध",
            "Çok fazla istek gönderildi",
            "Zbyt wiele żądań",
            "Te veel aanvragen",
            "Quá nhiều yêu cầu",
            "Terlalu banyak permintaan",
        ],
    ),
    (
        Quota,
        &[
            "Se ha excedido el límite diario de solicitudes",
            "Cuota excedida",
            "Limite quotidienne de jetons dépassée",
            "Das Tageslimit wurde überschritten",
            "Превышен дневной лимит",
            "1日の上限を超えました",
            "일일 토큰 한도를 초과했습니다",
            "Günlük sınır aşıldı",
            "Kuota terlampaui, kuota melebihi batas",
        ],
    ),
    (
        Auth,
        &[
            "Chave de API inválida",
            "Falha na autenticação",
            "La clave de API no es válida",
            "Error de autenticación",
            "Clé API invalide",
            "Échec de l'authentification",
            "Ungültiger API-Schlüssel",
            "Authentifizierung fehlgeschlagen",
            "Chiave API non valida",
            "Неверный API-ключ",
            "Ошибка аутентификации",
            "APIキーが無効です",
            "認証に失敗しました",
            "API 키가 유효하지 않습니다",
            "인증에 실패했습니다",
            "API密钥无效",
            "مفتاح API غير صالح",
            "API कुंजी अमान्य है",
            "Geçersiz API anahtarı",
            "Nieprawidłowy klucz API",
            "Ongeldige API-sleutel",
            "Khóa API không hợp lệ",
            "Kunci API tidak valid",
            "Токен доступа истёк",
        ],
    ),
];

#[test]
fn errors_in_other_languages_get_their_class() {
    let wrong: Vec<String> = TRANSLATED
        .iter()
        .flat_map(|(class, sentences)| sentences.iter().map(move |sentence| (*class, *sentence)))
        .filter_map(|(class, sentence)| {
            let found = decide(Some(400), &[], &format!("{sentence}."));
            (found != class).then(|| format!("{sentence}: found {found:?}, expected {class:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Other mistakes, in the same words. A wrong overflow would shorten the conversation for nothing.
#[test]
fn other_errors_in_other_languages_stay_unknown() {
    for sentence in [
        "O modelo não existe",
        "max_tokens excede o limite de tokens de saída do modelo",
        "O parâmetro temperature excede o máximo",
        "A imagem enviada é muito grande, entrada recusada",
        "La clave `foo` no es válida en el esquema de la herramienta",
        "El archivo de entrada es demasiado grande",
        "El contexto del mensaje no contiene un rol",
        "Le paramètre d'entrée dépasse la valeur maximale",
        "Das Werkzeug hat einen zu langen Namen: Eingabe ist zu lang",
        "Modell nicht gefunden",
        "Il modello richiesto non esiste",
        "Модель не найдена",
        "Изображение во входных данных слишком большое",
        "Неверный ключ в схеме инструмента",
        "モデルが見つかりません",
        "出力トークン数が上限を超えています",
        "画像の入力が大きすぎます",
        "모델을 찾을 수 없습니다",
        "출력 토큰 수가 한도를 초과합니다",
        "输入参数 temperature 超过最大值",
        "模型不存在",
        "النموذج غير موجود",
        "मॉडल नहीं मिला",
        "Model bulunamadı",
        "Obraz wejściowy jest zbyt duży",
        "Het model bestaat niet",
        "Mô hình không tồn tại",
        "Model tidak ditemukan",
        // English, with pieces of such words.
        "invalid token in template language at line 3",
        "insufficient permissions to read the credit report",
        "the limit of tools in this context is 128",
        "the parameter `clave` is not a valid api field",
        "the fallback authenticator is not set",
    ] {
        assert_eq!(decide(Some(400), &[], sentence), Unknown, "{sentence}");
    }
    assert_eq!(decide(Some(503), &[], "El servidor no está disponible"), Timeout);
    assert_eq!(decide(Some(429), &[], "Saldo insuficiente"), Billing);
    assert_eq!(decide(Some(403), &[], "Превышена длина контекста"), Auth);
}
